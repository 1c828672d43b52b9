"""Softmax attention of grouped query heads: cost and reference on the host, its steps in kernels.

Scores are in units of log 2 in kernels, so that weights are powers of two.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from tilewright import language as tl
from tilewright.errors import BenchError
from tilewright.programs.bound import Work
from tilewright.programs.inputs import Array

QHeads = Annotated[int, "query heads"]
KvHeads = Annotated[int, "key-value heads, split over the PEs of a cube"]
HeadDim = Annotated[int, "channels of a head"]

F16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Heads:
    """``group`` query heads share a KV head."""

    kv: int
    group: int
    dim: int

    @property
    def scale(self) -> float:
        """Of the scores."""
        return float(self.dim**-0.5)

    @property
    def token_bytes(self) -> int:
        """Of one token's key and value, over all KV heads, in f16."""
        return 2 * self.kv * self.dim * F16_BYTES

    @property
    def query_bytes(self) -> int:
        """Of one token's query, or of its output, over all heads, in f16."""
        return self.kv * self.group * self.dim * F16_BYTES

    def work(
        self, num_pes: int, *, queries: int, tokens: int, pairs: int, outputs: int | None = None
    ) -> Work:
        """Return the work of attention in f16 over pairs of a query and a key.

        Queries are read once and tokens, which are a key and a value, once; ``outputs`` are
        written, or as many as ``queries``.
        """
        num_scores = pairs * self.kv * self.group
        return Work(
            num_pes=num_pes,
            read_bytes=queries * self.query_bytes + tokens * self.token_bytes,
            written_bytes=(queries if outputs is None else outputs) * self.query_bytes,
            flop={"f16": 4 * num_scores * self.dim},  # two products over the channels
            elements=dict.fromkeys(("max", "sub", "exp2", "sum"), num_scores),
        )


def heads_of(where: str, q_heads: int, kv_heads: int, head_dim: int) -> Heads:
    """Return the heads that parameters ask for; those that do not make groups are refused."""
    if kv_heads < 1 or q_heads < 1 or q_heads % kv_heads or head_dim < 1:
        found = f"{q_heads} query heads for {kv_heads} KV heads of {head_dim} channels"
        fix = "take a multiple, as 32 for 8"
        raise BenchError(where, found, "groups of equal size, at least 1 of each", fix)
    return Heads(kv_heads, q_heads // kv_heads, head_dim)


def num_pairs(length: int, *, causal: bool) -> int:
    """Return the pairs of a query and a key that it sees, in a prompt."""
    return length * (length + 1) // 2 if causal else length**2


def deal_tokens(array: Array, table: Array, size: int) -> Array:
    """Deal (kv, group, length, dim) as (owners, kv, blocks, group, size, dim).

    ``table`` has the blocks of ``size`` tokens of each owner; behind the last token are zeros.
    """
    kv, group, length, dim = array.shape
    padded = np.zeros((kv, group, table.size * size, dim), array.dtype)
    padded[:, :, :length] = array
    blocks = padded.reshape(kv, group, table.size, size, dim)
    return blocks[:, :, table].transpose(2, 0, 3, 1, 4, 5)


def collect_tokens(dealt: Array, table: Array, length: int) -> Array:
    """Undo ``deal_tokens``."""
    _, kv, _, group, size, dim = dealt.shape
    blocks = np.empty((kv, group, table.size, size, dim), dealt.dtype)
    blocks[:, :, table] = dealt.transpose(1, 3, 0, 2, 4, 5)
    return blocks.reshape(kv, group, -1, dim)[:, :, :length]


def attention(q: Array, k: Array, v: Array, *, visible: Array | None = None) -> Array:
    """Attend in float64: queries (..., queries, head_dim) over keys and values (keys, head_dim).

    ``visible``, (queries, keys), says which keys a query sees; without it, all.
    """
    wide_q, wide_k, wide_v = (array.astype(np.float64) for array in (q, k, v))
    scores = wide_q @ wide_k.T / np.sqrt(wide_k.shape[-1])
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ wide_v)


def attention_by_head(queries: Array, keys: Array, values: Array, *, causal: bool = False) -> Array:
    """Attend in float64, one KV head after the other; queries (kv, group, length, head_dim)."""
    places = np.arange(queries.shape[-2])
    visible = places[:, None] >= places[None, :] if causal else None
    rows = zip(queries, keys, values, strict=True)
    return np.stack([attention(q, k, v, visible=visible) for q, k, v in rows])


LOG2_E = 1.4426950408889634


def in_log2(queries: Any, scale: float) -> Any:
    """Return queries whose scores are scaled and in units of log 2."""
    return (queries * (scale * LOG2_E)).to(queries.dtype)


class SoftmaxState(NamedTuple):
    """What is known of a softmax over the keys so far; all in f32."""

    peak: Any  # (rows,) greatest score
    total: Any  # (rows,) sum of weights relative to the peak
    output: Any  # (rows, head_dim) weighted sum of values, not yet divided


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
