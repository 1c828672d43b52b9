"""Rules with weights: token indexers and gates."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment, reserved_and, softmax


def dsa(moment: Moment, query_weight: Array, head_weight: Array, key_weight: Array) -> Array:
    """I_s = sum_j w_j relu(q_j . k_s), with the largest token standing for its page.

    query_weight [J, d, G * D] and head_weight [J, G * D] see all heads; key_weight is [d, D].
    """
    flat = moment.q.reshape(-1)
    queries, weights = query_weight @ flat, head_weight @ flat
    keys = moment.keys @ key_weight.T
    index = (np.maximum(keys @ queries.T, 0.0) * weights).sum(axis=1)
    block = moment.decode.block_size
    out: Array = index[: moment.num_finished * block].reshape(-1, block).max(axis=1)
    return out


def seer_attention(moment: Moment, query_weight: Array, key_weight: Array) -> Array:
    """Q' . K': a learned merge of the group against pooled keys.

    query_weight [d, G * D]; key_weight [d, 3 D] sees max, min and mean of a page's keys.
    """
    pages = moment.finished(moment.keys)
    pooled = np.concatenate([pages.max(axis=1), pages.min(axis=1), pages.mean(axis=1)], axis=1)
    query = query_weight @ moment.q.reshape(-1)
    out: Array = (pooled @ key_weight.T) @ query
    return out


def seer_threshold(
    moment: Moment, query_weight: Array, key_weight: Array, threshold: float
) -> list[int]:
    """Pages whose share of the middle, softmax of the gate over sqrt(d), reaches the threshold."""
    scores = seer_attention(moment, query_weight, key_weight)[moment.middle]
    shares = softmax(scores / np.sqrt(len(query_weight)))
    chosen = np.flatnonzero(shares >= threshold) + moment.middle.start
    return reserved_and(moment, [int(page) for page in chosen])
