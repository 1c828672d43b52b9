"""Attention block by block: a running maximum, a running sum and a running output per row.

Scores are in units of log 2, so that weights are powers of two.
"""

from typing import Any, NamedTuple

from tilewright import language as tl

LOG2_E = 1.4426950408889634


class SoftmaxState(NamedTuple):
    """What is known of a softmax over the keys so far; all in f32."""

    peak: Any  # (rows,) greatest score
    total: Any  # (rows,) sum of weights relative to the peak
    output: Any  # (rows, head_dim) weighted sum of values, not yet divided


def scaled(q: Any, scale: float) -> Any:
    """Return queries whose scores are in units of log 2."""
    return (q * (scale * LOG2_E)).to(q.dtype)


def begin_softmax(rows: int, head_dim: int) -> SoftmaxState:
    """Return the state before any key."""
    return SoftmaxState(
        tl.full((rows,), -float("inf"), tl.float32),
        tl.zeros((rows,), tl.float32),
        tl.zeros((rows, head_dim), tl.float32),
    )


def attend(state: SoftmaxState, scores: Any, values: Any) -> SoftmaxState:
    """Return the state after so many more keys: scores (rows, keys) and values (keys, head_dim)."""
    peak = tl.maximum(state.peak, tl.max(scores, 1))
    weights = tl.exp2(scores - peak[:, None])
    fade = tl.exp2(state.peak - peak)
    total = state.total * fade + tl.sum(weights, 1)
    output = tl.dot(weights.to(values.dtype), values, state.output * fade[:, None])
    return SoftmaxState(peak, total, output)


def merge_softmax(one: SoftmaxState, other: SoftmaxState) -> SoftmaxState:
    """Return the state over the keys of both; each of them has seen a key."""
    peak = tl.maximum(one.peak, other.peak)
    fades = [tl.exp2(state.peak - peak) for state in (one, other)]
    total = one.total * fades[0] + other.total * fades[1]
    output = one.output * fades[0][:, None] + other.output * fades[1][:, None]
    return SoftmaxState(peak, total, output)


def end_softmax(state: SoftmaxState) -> Any:
    """Return the output, (rows, head_dim)."""
    return state.output * (1.0 / state.total)[:, None]
