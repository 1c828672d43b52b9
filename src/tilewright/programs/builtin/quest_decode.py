"""Sparse decode attention on one cube: page summaries, scores, the best pages, their tokens."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from tilewright import language as tl
from tilewright.errors import BenchError
from tilewright.host import LaunchReport, LocalShard, LocalSize, RuntimeContext, Split, Tensor
from tilewright.programs.attention import (
    F16_BYTES,
    HeadDim,
    Heads,
    KvHeads,
    QHeads,
    attend,
    attention_by_head,
    begin_softmax,
    end_softmax,
    heads_of,
    in_log2,
)
from tilewright.programs.bound import Path
from tilewright.programs.contract import BenchOutcome, BenchProgram, measured, row_error
from tilewright.programs.inputs import Array, Draw, Pes, Team, check_sizes, deploy, reserve, team_of
from tilewright.programs.parameter import ProgramFit, fit_below

SCORE_TILE = (16, 128, 128)  # M, N, K of the products with the summaries
ULPS = 4  # a score in f32 may be so far from the one in float64
Selection = Literal["scores", "uniform", "recent"]


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
            in_log2(q, scale), k_ptr + keys, v_ptr + keys,
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


@dataclass(frozen=True, slots=True)
class _Cache:
    """Keys and values by logical page, and the physical page of each; all by KV head."""

    queries: Array  # (kv, group, dim)
    keys: Array  # (kv, pages, page size, dim)
    values: Array
    table: Array  # (kv, pages)

    @property
    def low(self) -> Array:
        return np.asarray(self.keys.min(2))

    @property
    def high(self) -> Array:
        return np.asarray(self.keys.max(2))

    def physical(self, logical: Array) -> Array:
        """Return pages in the order in which memory has them."""
        result = np.empty_like(logical)
        for head, places in enumerate(self.table):
            result[head, places] = logical[head]
        return result


def _run(
    torch: RuntimeContext,
    pages: Annotated[int, "of the request's cache"] = 256,
    budget: Annotated[int, "pages that are read"] = 32,
    page_size: Annotated[int, "tokens of a page"] = 16,
    q_heads: QHeads = 32,
    kv_heads: KvHeads = 8,
    head_dim: HeadDim = 128,
    selection: Annotated[
        Selection, "pages by their scores; without values uniform (drawn) or recent (the last)"
    ] = "scores",
    ties: Annotated[bool, "small integers as inputs, so that many scores are equal"] = False,
    turn: Annotated[int, "pages that are loaded at a time"] = 4,
    pes: Pes = 0,
) -> BenchOutcome:
    check_sizes("quest_decode", pages=pages, budget=budget, page_size=page_size, turn=turn)
    heads = heads_of("quest_decode", q_heads, kv_heads, head_dim)
    _check(torch, pages, budget, selection)
    team, draw = team_of(torch, pes=pes).at_most(pes=heads.kv), Draw(torch)
    cache = _draw_cache(draw, heads, pages, page_size, ties=ties)
    fixed = _fixed_pages(draw, heads.kv, pages, budget, selection)
    chosen, out, report = _launch(torch, team, heads, cache, budget, fixed, turn)
    num_tokens, summaries = budget * page_size, pages if fixed is None else 0
    work = heads.work(team.num_pes, queries=1, tokens=num_tokens, pairs=num_tokens)
    num_bounds = summaries * heads.kv * heads.dim  # a least and a greatest key for each page
    work = replace(
        work,
        read_bytes=work.read_bytes + 2 * num_bounds * F16_BYTES,
        flop={"f16": work.flop["f16"] + 2 * num_bounds * heads.group},
    )
    return measured(
        torch,
        report,
        work,
        lambda: _error(cache, fixed, chosen.numpy(timed=False), out.numpy(timed=False)),
        path=Path(pes=report.pes, loads=2),  # what chooses pages, and the pages
        notes=(f"selection: {selection}, {budget} of {pages} pages",),
    )


def _check(torch: RuntimeContext, pages: int, budget: int, selection: str) -> None:
    if budget > pages:
        found = f"budget={budget} of {pages} pages"
        raise BenchError("quest_decode", found, "no more than there are", "set it lower")
    if selection == "scores" and not torch.carries_data:
        found = "selection=scores in a run without values"
        expected = "values to compute scores from, or a selection that needs none"
        fix = "run it with values, or set selection=uniform or selection=recent"
        raise BenchError("quest_decode", found, expected, fix)


def _draw_cache(draw: Draw, heads: Heads, pages: int, page_size: int, *, ties: bool) -> _Cache:
    queries = draw.normal((heads.kv, heads.group, heads.dim), "f16")
    tokens = (heads.kv, pages, page_size, heads.dim)
    keys, values = (draw.normal(tokens, "f16") for _ in range(2))
    if ties:
        queries, keys = (np.clip(np.rint(array), -1, 1) for array in (queries, keys))
        keys = keys * draw.integers.integers(1, 4, (heads.kv, pages, 1, 1), np.int8)
    table = [draw.integers.permutation(pages) for _ in range(heads.kv)]
    return _Cache(queries, keys, values, np.array(table, np.int32))


def _fixed_pages(
    draw: Draw, kv_heads: int, pages: int, budget: int, selection: str
) -> Array | None:
    """Return (kv, budget) pages that no score chooses; None: scores do."""
    match selection:
        case "uniform":
            rows = [draw.integers.permutation(pages)[:budget] for _ in range(kv_heads)]
            return np.sort(np.array(rows, np.int32), axis=1)
        case "recent":
            return np.tile(np.arange(pages - budget, pages, dtype=np.int32), (kv_heads, 1))
    return None


def _launch(
    torch: RuntimeContext, team: Team, heads: Heads, cache: _Cache, budget: int,
    fixed: Array | None, turn: int,
) -> tuple[Tensor, Tensor, LaunchReport]:  # fmt: skip
    by_head = team.policy(pe=Split(0))
    arrays = {
        "q": cache.queries,
        "k": cache.physical(cache.keys),
        "v": cache.physical(cache.values),
        "low": cache.low,
        "high": cache.high,
        "table": cache.table,
        "chosen": np.zeros((heads.kv, budget), np.int32) if fixed is None else fixed,
    }
    tensors = [deploy(torch, name, array, by_head) for name, array in arrays.items()]
    out = reserve(torch, "out", cache.queries.shape, "f16", by_head)
    _, pages, page_size, _ = cache.keys.shape
    report = torch.launch(
        quest_kernel, *map(LocalShard, (*tensors, out)), LocalSize(out, 0),
        pages, budget, page_size, heads.group, heads.dim,
        turn, heads.scale, fixed is None,
    ).report  # fmt: skip
    return tensors[-1], out, report


def page_scores(queries: Array, low: Array, high: Array) -> Array:
    """Return score(P) = max_g sum_d max(q_gd high_Pd, q_gd low_Pd) in float64, (kv, pages)."""
    wide_low, wide_high = low.astype(np.float64), high.astype(np.float64)
    bounds = [
        np.maximum(q[:, None] * wide_high, q[:, None] * wide_low).sum(-1)
        for q in np.moveaxis(queries.astype(np.float64), 1, 0)  # one query head of each group
    ]
    return np.asarray(np.max(bounds, axis=0))


def best_pages(scores: Array, budget: int) -> Array:
    """Return the pages with the greatest scores, greatest first; the lowest page among equals."""
    return np.argsort(-scores, axis=-1, kind="stable")[..., :budget].astype(np.int32)


def _error(cache: _Cache, fixed: Array | None, chosen: Array, found: Array) -> float:
    """Return infinity for a wrong choice; else the error of attention over the chosen pages."""
    if fixed is None:
        scores = page_scores(cache.queries, cache.low, cache.high)
        if not all(map(is_choice, scores, chosen)):
            return float("inf")
    heads = np.arange(len(chosen))[:, None]
    keys, values = (
        array[heads, chosen].reshape(len(chosen), -1, array.shape[-1])
        for array in (cache.keys, cache.values)
    )
    return row_error(found, attention_by_head(cache.queries, keys, values))


def is_choice(scores: Array, chosen: Array) -> bool:
    """Whether these are the best pages, up to what f32 cannot tell apart."""
    best = best_pages(scores, chosen.size)
    if np.array_equal(chosen, best):
        return True
    is_set = np.unique(chosen).size == chosen.size and bool(np.all(chosen >= 0))
    if not is_set or chosen.max() >= scores.size:
        return False
    slack = ULPS * np.spacing(np.float32(np.abs(scores).max()))
    is_close = np.abs(scores[chosen] - scores[best]) <= slack
    is_tie = scores[chosen] == scores[best]  # broken by the rule, so another page is wrong
    return bool(np.all((chosen == best) | (is_close & ~is_tie)))


PROGRAMS = (
    BenchProgram(
        "quest_decode",
        "decode attention over the pages that Quest selects, on one cube",
        _run,
        fit=ProgramFit(
            counts=fit_below("budget", "pages"),
            tiles=(("turn", "page_size", "pages"), ("head_dim",)),
            sizes=(("pages",),),
        ),
    ),
)
