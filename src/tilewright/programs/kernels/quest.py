"""Quest: attention of one token over the pages whose keys can matter most."""

from typing import Any

from tilewright import language as tl
from tilewright.programs.kernels.softmax_state import (
    LOG2_E,
    attend,
    begin_softmax,
    end_softmax,
)

SCORE_TILE = (16, 128, 128)  # M, N, K of the products with the summaries


def quest_kernel(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, low_ptr: Any, high_ptr: Any, table_ptr: Any,
    chosen_ptr: Any, out_ptr: Any, kv_heads: int, pages: int, budget: int,
    page_size: int, group: int, head_dim: int, turn: int, scale: float, scored: bool,
) -> None:  # fmt: skip
    """q and out: (kv_heads, group, head_dim); k and v: (kv_heads, pages, page_size, head_dim) by
    physical page; low and high: (kv_heads, pages, head_dim), the least and greatest key of each
    logical page, channel by channel; table: (kv_heads, pages), the physical page of a logical one.

    chosen: (kv_heads, budget) logical pages, which the kernel finds if it is ``scored`` and else
    takes as they are. Pages are loaded in turns of ``turn``.
    """
    for head in range(kv_heads):
        summaries = head * pages * head_dim
        chosen = chosen_ptr + head * budget
        q = tl.load(q_ptr + head * group * head_dim, shape=(group, head_dim))
        if scored:
            low, high = low_ptr + summaries, high_ptr + summaries
            _choose_pages(q, low, high, chosen, pages, budget, head_dim)
        keys = head * pages * page_size * head_dim
        state = _attend_pages(
            (q * (scale * LOG2_E)).to(q.dtype), k_ptr + keys, v_ptr + keys,
            table_ptr + head * pages, chosen, budget, page_size, group, head_dim, turn,
        )  # fmt: skip
        out = end_softmax(state).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + head * group * head_dim, out)


def _choose_pages(
    q: Any, low_ptr: Any, high_ptr: Any, chosen_ptr: Any, pages: int, budget: int, head_dim: int
) -> None:
    """Write the pages with the greatest scores, lower pages first among equal ones.

    score(P) = max_g sum_d max(q_gd high_Pd, q_gd low_Pd). A positive q_gd takes ``high`` and a
    negative one ``low``, so the sums are two products with the parts of q.
    """
    shape, strides = (head_dim, pages), (1, head_dim)
    above, below = tl.maximum(q, 0.0).to(q.dtype), tl.minimum(q, 0.0).to(q.dtype)
    high = tl.ref(high_ptr, shape, strides=strides)
    low = tl.ref(low_ptr, shape, strides=strides)
    parts = [
        tl.composite("gemm", above, high, tile_shape=SCORE_TILE),
        tl.composite("gemm", below, low, tile_shape=SCORE_TILE),
    ]
    scores = tl.max(tl.wait(parts[0]) + tl.wait(parts[1]), 0)
    best = tl.sort(_keys_of(scores, pages), descending=True)
    order = tl.arange(0, pages)
    tl.store(chosen_ptr + order, pages - 1 - (best & 0xFFFFFFFF).to(tl.int32), mask=order < budget)


def _keys_of(scores: Any, pages: int) -> Any:
    """Integers in the order of the scores, and in that of falling pages among equal scores."""
    bits = (scores + 0.0).to(tl.int32, bitcast=True)  # -0.0 + 0.0 is 0.0: equal scores, equal bits
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    return (ordered << 32) | (pages - 1 - tl.arange(0, pages)).to(tl.int64)


def _attend_pages(
    q: Any, k_ptr: Any, v_ptr: Any, table_ptr: Any, chosen_ptr: Any,
    budget: int, page_size: int, group: int, head_dim: int, turn: int,
) -> Any:  # fmt: skip
    turns = [tl.arange(first, min(first + turn, budget)) for first in range(0, budget, turn)]
    logical = [tl.load(chosen_ptr + places) for places in turns]
    physical = [tl.load(table_ptr + pages) for pages in logical]
    state = begin_softmax(group, head_dim)
    for pages in physical:
        rows = pages[:, None] * page_size + tl.arange(0, page_size)[None, :]
        places = tl.reshape(rows, (-1, 1)) * head_dim + tl.arange(0, head_dim)[None, :]
        k, v = tl.load(k_ptr + places), tl.load(v_ptr + places)
        state = attend(state, tl.dot(q, tl.trans(k)), v)
    return state
