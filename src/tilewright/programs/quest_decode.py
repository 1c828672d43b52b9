"""Sparse decode attention on one cube: page summaries, scores, the best pages, their tokens."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from tilewright.errors import BenchError
from tilewright.host import LaunchReport, LocalShard, LocalSize, RuntimeContext, Split, Tensor
from tilewright.programs.attention_reference import attention
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw
from tilewright.programs.fit import Changes, Offer, ProgramFit, Values, fit_team
from tilewright.programs.heads import F16_BYTES, HeadDim, Heads, KvHeads, QHeads, heads_of
from tilewright.programs.kernels.quest import quest_kernel
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_sizes
from tilewright.programs.team import Array, Pes, Team, deploy, reserve, team_of

ULPS = 4  # a score in f32 may be so far from the one in float64
Selection = Literal["scores", "uniform", "recent"]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The cache of one request: so many pages, of which so many may be read."""

    count: int
    size: int
    budget: int


@dataclass(frozen=True, slots=True)
class _Cache:
    """Keys and values by logical page, and the physical page of each; all by KV head."""

    queries: Array  # (kv, group, dim)
    keys: Array  # (kv, pages, page size, dim)
    values: Array
    table: Array  # (kv, pages)

    @property
    def low(self) -> Array:
        result: Array = self.keys.min(2)
        return result

    @property
    def high(self) -> Array:
        result: Array = self.keys.max(2)
        return result

    def physical(self, logical: Array) -> Array:
        """Pages in the order in which memory has them."""
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
    sizes = _Pages(pages, page_size, budget)
    _check(torch, sizes, selection)
    team, draw = team_of(torch, pes=pes).at_most(pes=heads.kv), Draw(torch)
    cache = _draw_cache(draw, heads, sizes, ties=ties)
    fixed = _fixed_pages(draw, heads, sizes, selection)
    chosen, out, report = _launch(torch, team, heads, sizes, cache, fixed, turn)
    return measured(
        torch,
        (report,),
        bound_of(
            torch.machine,
            _work(team, heads, sizes, scored=fixed is None),
            Path(pes=report.pes, loads=2),  # what chooses pages, and the pages
        ),
        error=lambda: _error(cache, fixed, chosen.numpy(timed=False), out.numpy(timed=False)),
        tolerance=tolerance_of("f16"),
        notes=(f"selection: {selection}, {budget} of {pages} pages",),
    )


def _check(torch: RuntimeContext, sizes: _Pages, selection: str) -> None:
    if sizes.budget > sizes.count:
        found = f"budget={sizes.budget} of {sizes.count} pages"
        raise BenchError("quest_decode", found, "no more than there are", "set it lower")
    if selection == "scores" and not torch.carries_data:
        found = "selection=scores in a run without values"
        expected = "values to compute scores from, or a selection that needs none"
        fix = "run it with values, or set selection=uniform or selection=recent"
        raise BenchError("quest_decode", found, expected, fix)


def _draw_cache(draw: Draw, heads: Heads, sizes: _Pages, *, ties: bool) -> _Cache:
    queries = draw.normal((heads.kv, heads.group, heads.dim), "f16")
    tokens = (heads.kv, sizes.count, sizes.size, heads.dim)
    keys, values = (draw.normal(tokens, "f16") for _ in range(2))
    if ties:
        queries, keys = (np.clip(np.rint(array), -1, 1) for array in (queries, keys))
        keys = keys * draw.integers.integers(1, 4, (heads.kv, sizes.count, 1, 1), np.int8)
    table = [draw.integers.permutation(sizes.count) for _ in range(heads.kv)]
    return _Cache(queries, keys, values, np.array(table, np.int32))


def _fixed_pages(draw: Draw, heads: Heads, sizes: _Pages, selection: str) -> Array | None:
    """(kv, budget) pages that no score chooses; None: scores do."""
    match selection:
        case "uniform":
            rows = [draw.integers.permutation(sizes.count)[: sizes.budget] for _ in range(heads.kv)]
            return np.sort(np.array(rows, np.int32), axis=1)
        case "recent":
            last = np.arange(sizes.count - sizes.budget, sizes.count, dtype=np.int32)
            return np.tile(last, (heads.kv, 1))
    return None


def _launch(
    torch: RuntimeContext, team: Team, heads: Heads, sizes: _Pages, cache: _Cache,
    fixed: Array | None, turn: int,
) -> tuple[Tensor, Tensor, LaunchReport]:  # fmt: skip
    by_head = team.policy(pe=Split(0))
    start = np.zeros((heads.kv, sizes.budget), np.int32) if fixed is None else fixed
    arrays = {
        "q": cache.queries,
        "k": cache.physical(cache.keys),
        "v": cache.physical(cache.values),
        "low": cache.low,
        "high": cache.high,
        "table": cache.table,
        "chosen": start,
    }
    tensors = [deploy(torch, name, array, by_head) for name, array in arrays.items()]
    out = reserve(torch, "out", cache.queries.shape, "f16", by_head)
    report = torch.launch(
        quest_kernel, *map(LocalShard, (*tensors, out)), LocalSize(out, 0),
        sizes.count, sizes.budget, sizes.size, heads.group, heads.dim,
        turn, heads.scale, fixed is None,
    ).report  # fmt: skip
    return tensors[-1], out, report


def _work(team: Team, heads: Heads, sizes: _Pages, *, scored: bool) -> Work:
    """Summaries once, tokens of the chosen pages once."""
    num_tokens = sizes.budget * sizes.size
    num_bounds = sizes.count * heads.kv * heads.group if scored else 0
    summary_bytes = 2 * sizes.count * heads.kv * heads.dim * F16_BYTES if scored else 0
    return Work(
        num_pes=team.num_pes,
        read_bytes=heads.query_bytes + summary_bytes + num_tokens * heads.token_bytes,
        written_bytes=heads.query_bytes,
        flop={"f16": heads.flop(num_tokens) + 2 * num_bounds * heads.dim},
        elements=heads.elements(num_tokens),
    )


def page_scores(queries: Array, low: Array, high: Array) -> Array:
    """Quest's, in float64: score(P) = max_g sum_d max(q_gd high_Pd, q_gd low_Pd), (kv, pages)."""
    wide_low, wide_high = low.astype(np.float64), high.astype(np.float64)
    bounds = [
        np.maximum(q[:, None] * wide_high, q[:, None] * wide_low).sum(-1)
        for q in np.moveaxis(queries.astype(np.float64), 1, 0)  # one query head of each group
    ]
    result: Array = np.max(bounds, axis=0)
    return result


def best_pages(scores: Array, budget: int) -> Array:
    """The pages with the greatest scores, in their order; the lowest page first among equals."""
    return np.argsort(-scores, axis=-1, kind="stable")[..., :budget].astype(np.int32)


def _error(cache: _Cache, fixed: Array | None, chosen: Array, found: Array) -> float:
    """Infinite for a wrong choice; else that of attention over the chosen pages."""
    if fixed is None:
        scores = page_scores(cache.queries, cache.low, cache.high)
        if not all(map(is_choice, scores, chosen)):
            return float("inf")
    rows = range(chosen.shape[0])
    keys, values = (
        [array[head, chosen[head]].reshape(-1, array.shape[-1]) for head in rows]
        for array in (cache.keys, cache.values)
    )
    expected = [attention(cache.queries[head], keys[head], values[head]) for head in rows]
    return row_error(found, np.stack(expected))


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


def _counts(offer: Offer, values: Values) -> Changes:
    found = fit_team(offer, values)
    if int(values["budget"]) > int(values["pages"]):
        found["budget"] = int(values["pages"])
    return found


QUEST_DECODE = BenchProgram(
    "quest_decode",
    "decode attention over the pages that Quest selects, on one cube",
    _run,
    fit=ProgramFit(
        counts=_counts, tiles=(("turn", "page_size", "pages"), ("head_dim",)), sizes=(("pages",),)
    ),
)
