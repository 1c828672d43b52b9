"""Softmax attention in float64, one KV head at a time."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def attention(q: Array, k: Array, v: Array, *, visible: Array | None = None) -> Array:
    """Of queries (..., queries, head_dim) over keys and values (keys, head_dim).

    ``visible``, (queries, keys), says which keys a query sees; without it, all.
    """
    wide_q, wide_k, wide_v = (array.astype(np.float64) for array in (q, k, v))
    scores = wide_q @ wide_k.T / np.sqrt(wide_k.shape[-1])
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = weights / weights.sum(-1, keepdims=True) @ wide_v
    return result
