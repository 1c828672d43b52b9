"""What attention tells a flow: the mass of the last step, and that of the prompt's last queries."""

import numpy as np

from tests.attention.oracle_ops.attention import attend_tokens
from tests.attention.oracle_ops.row import Array, OracleRow


def attention_mass(row: OracleRow, last: Array) -> Array:
    """``last`` [pages of the last step, H]; pages since then, and all in the first step, have 0."""
    out = np.zeros((row.num_pages, 1, row.query_heads))
    for page, head in np.ndindex(*last.shape):
        out[page, 0, head] = last[page, head]
    return out


def prompt_mass(
    row: OracleRow, queries: Array, keys: Array, *, window: int, scale: float | None = None
) -> Array:
    """``queries`` [P, H, D] and ``keys`` [P, D] of the whole prompt; its last ``window`` count."""
    factor = keys.shape[1] ** -0.5 if scale is None else scale
    out = np.zeros((row.num_pages, 1, queries.shape[1]))
    for position in range(max(len(keys) - window, 0), len(keys)):
        before = list(range(position + 1))
        _, _, weight = attend_tokens(queries[position], keys, keys, before, factor)
        for token in before:
            out[token // row.block_size, 0] += weight[:, token]
    return out
