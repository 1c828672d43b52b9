"""Rules on a few channels: labels fixed beforehand, or the query's largest."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment
from tests.attention.oracle_flows.quest import bounds


def largest_channels(moment: Moment, count: int) -> list[int]:
    """Channels with the largest sum of |q| over the group; of equals the lower ones."""
    strength = np.abs(moment.q).sum(axis=0)
    return sorted(range(len(strength)), key=lambda channel: (-strength[channel], channel))[:count]


def double_sparsity(moment: Moment, labels: list[int]) -> Array:
    """max over heads and tokens of the dot product on the label channels."""
    pages = moment.finished(moment.keys)[..., labels]
    out: Array = np.einsum("gd,ptd->ptg", moment.q[:, labels], pages).max(axis=(1, 2))
    return out


def channel_bounds(moment: Moment, count: int) -> Array:
    """Stage two of RocketKV: the Quest bound on the query's largest channels, best of the group."""
    channels = largest_channels(moment, count)
    pages = moment.finished(moment.keys)[..., channels]
    out: Array = bounds(moment.q[:, channels], pages).max(axis=1)
    return out
