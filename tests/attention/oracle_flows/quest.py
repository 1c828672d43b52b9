"""Upper bounds from the largest and smallest key of a page, channel by channel."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment


def bounds(query: Array, keys: Array) -> Array:
    """sum_d max(q_d M_d, q_d m_d) for queries [G, D] and pages [..., tokens, D]: [..., G]"""
    high, low = keys.max(axis=-2), keys.min(axis=-2)
    best = np.maximum(high[..., None, :] * query, low[..., None, :] * query)
    out: Array = best.sum(axis=-1)
    return out


def quest(moment: Moment) -> Array:
    """The largest bound of the group."""
    out: Array = bounds(moment.q, moment.finished(moment.keys)).max(axis=1)
    return out


def quest_group_sum(moment: Moment) -> Array:
    out: Array = bounds(moment.q, moment.finished(moment.keys)).sum(axis=1)
    return out


def quest_mean_query(moment: Moment) -> Array:
    """The bound of the mean query, of one KV head; heads are added outside."""
    mean = moment.q.mean(axis=0, keepdims=True)
    return bounds(mean, moment.finished(moment.keys))[:, 0]


def lserve_sparse_attention(moment: Moment, part: int = 16) -> Array:
    """The largest bound of all heads and sub-blocks."""
    out: Array = bounds(moment.q, moment.finished(moment.keys, part)).max(axis=(1, 2))
    return out


def masked_quest_sparse_attention(moment: Moment, masked: int = 8) -> Array:
    """Channels 0 .. masked - 1 do not count."""
    keys = moment.finished(moment.keys)[..., masked:]
    out: Array = bounds(moment.q[:, masked:], keys).max(axis=1)
    return out


def mean_quest_blend(moment: Moment, weight: float = 0.5) -> Array:
    """weight <q, c_P> + (1 - weight) bound, the largest of the group."""
    pages = moment.finished(moment.keys)
    mean = pages.mean(axis=1) @ moment.q.T
    out: Array = (weight * mean + (1.0 - weight) * bounds(moment.q, pages)).max(axis=1)
    return out


def quest_mla(moment: Moment) -> Array:
    """The bound of the mean query on latents."""
    return quest_mean_query(moment)
