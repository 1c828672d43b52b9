"""Rules on windows of keys that overlap pages: InfLLM-v2 and NSA."""

from dataclasses import dataclass

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment, softmax


def windows(tokens: Array, width: int, stride: int) -> Array:
    """[count, width, D] of all whole windows, in order."""
    starts = range(0, len(tokens) - width + 1, stride)
    return np.array([tokens[start : start + width] for start in starts])


def overlap(block: int, num_blocks: int, width: int, stride: int, count: int) -> Array:
    """Tokens that page p and window w share: [pages, windows]."""
    shared = np.zeros((num_blocks, count))
    for page in range(num_blocks):
        for window in range(count):
            low = max(page * block, window * stride)
            high = min((page + 1) * block, window * stride + width)
            shared[page, window] = max(high - low, 0)
    return shared


def infllm_v2(moment: Moment, width: int, stride: int) -> Array:
    """softmax over mean-pooled windows, summed over the group, the largest one a page touches."""
    block = moment.decode.block_size
    whole = moment.keys[: moment.num_finished * block]
    pooled = windows(whole, width, stride).mean(axis=1)
    weights = softmax(moment.q @ pooled.T / np.sqrt(moment.q.shape[1])).sum(axis=0)
    touched = overlap(block, moment.num_finished, width, stride, len(pooled)) > 0
    out: Array = np.where(touched, weights, -np.inf).max(axis=1)
    return out


@dataclass(frozen=True, slots=True)
class Compressor:
    """One key or value for a window: ``second silu(first flat(window) + bias)``.

    first [hidden, width * D], second [D, hidden], bias [hidden]: what positions in it add.
    """

    first: Array
    bias: Array
    second: Array

    def __call__(self, tokens: Array) -> Array:
        flat = tokens.reshape(len(tokens), -1)
        hidden = flat @ self.first.T + self.bias
        out: Array = (hidden / (1.0 + np.exp(-hidden))) @ self.second.T
        return out


@dataclass(frozen=True, slots=True)
class NsaWeights:
    keys: Compressor
    values: Compressor
    gates: Array  # [3, D]: compressed, selected, window; sigmoid of the query
    width: int
    stride: int


def nsa_compressed(moment: Moment, weights: NsaWeights) -> tuple[Array, Array]:
    """Attention over compressed windows: weights [G, windows] and the branch's output [G, D]."""
    whole = slice(0, moment.num_finished * moment.decode.block_size)
    pieces = [
        windows(tokens[whole], weights.width, weights.stride)
        for tokens in (moment.keys, moment.values)
    ]
    keys, values = weights.keys(pieces[0]), weights.values(pieces[1])
    shares = softmax(moment.q @ keys.T / np.sqrt(moment.q.shape[1]))
    return shares, shares @ values


def nsa_scores(moment: Moment, weights: NsaWeights) -> Array:
    """A window's weight counts for a page once for each stride of tokens that they share."""
    shares, _ = nsa_compressed(moment, weights)
    shared = overlap(
        moment.decode.block_size,
        moment.num_finished,
        weights.width,
        weights.stride,
        shares.shape[1],
    )
    out: Array = (shared / weights.stride) @ shares.sum(axis=0)
    return out


def nsa_gates(moment: Moment, weights: NsaWeights) -> Array:
    """[3, G]"""
    out: Array = 1.0 / (1.0 + np.exp(-(weights.gates @ moment.q.T)))
    return out
