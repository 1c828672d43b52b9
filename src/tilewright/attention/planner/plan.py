"""The plan of one decode step over all rows of a layer, as kernels are told it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.graph import Graph
from tilewright.attention.planner.budget import (
    Budget,
    Capped,
    DefaultBudget,
    MassRule,
    Reserved,
    RowBudget,
    RowFacts,
    ScoreRule,
)
from tilewright.attention.planner.policy import parse_policy
from tilewright.errors import PlanError

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class RowPath(StrEnum):
    """Whether a row selects, and if not, why it is dense."""

    SPARSE = "sparse"
    SKIPPED = "skipped"  # the layer stays dense
    SHORT = "short"  # fewer tokens than min_context
    FITS = "fits"  # its budget covers every block


class StateAdvance(StrEnum):
    """Which blocks' state the Saves of a step write."""

    VORTEX = "vortex"  # of rows that select: all blocks but the reserved last ones
    EVERY_BLOCK = "every_block"  # of all rows: every complete block, reserved or not


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSpec:
    """What a plan follows. Chunks are the work items of a kernel; values do not depend on them."""

    budget: Budget = field(default_factory=DefaultBudget)
    reserved: Reserved = field(default_factory=Reserved)
    dense_layers: frozenset[int] = frozenset()
    min_context: int = 0  # tokens below which a row stays dense
    chunk_blocks: int = 32
    state_advance: StateAdvance = StateAdvance.VORTEX

    def __post_init__(self) -> None:
        if self.chunk_blocks < 1:
            raise PlanError("plan.chunk_blocks", str(self.chunk_blocks), ">= 1", "raise it")
        if self.min_context < 0:
            raise PlanError("plan.min_context", str(self.min_context), ">= 0", "raise it")


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """Rows in the order given; every count and offset is 64 bits wide and read-only.

    ``row_offsets`` cuts the list of all blocks into rows (CSR), ``read_offsets`` the list of
    blocks that may be read at most. Each work item is (row, first block, stop block) and covers
    candidates only: reserved blocks are not scored. Rows that read everything have no items. Under
    a flow that saves state, items cover the blocks whose state the step advances.
    """

    reserved: Reserved
    paths: tuple[RowPath, ...]
    budgets: tuple[RowBudget, ...]
    num_blocks: Int64s
    num_tokens: Int64s
    row_offsets: Int64s
    read_offsets: Int64s
    work_items: Int64s  # [items, 3]
    state_advance: StateAdvance

    @property
    def num_rows(self) -> int:
        return len(self.paths)

    def is_sparse(self, row: int) -> bool:
        return self.paths[row] is RowPath.SPARSE

    def candidates(self, row: int) -> range:
        """The middle of a row: logical blocks that the selection chooses from."""
        stop = int(self.num_blocks[row]) - self.reserved.last
        return range(min(self.reserved.first, max(stop, 0)), max(stop, 0))


def plan_step(spec: PlanSpec, rows: Sequence[RowFacts], *, saves_state: bool = False) -> StepPlan:
    """Decide for every row; pure. Raises PlanError for a budget that cannot be kept.

    With ``saves_state`` the items of a row that selects begin at block 0, as its Saves do; where
    state advances in every block, items cover all blocks of all rows.
    """
    decisions = [_decide_row(spec, facts) for facts in rows]
    paths = tuple(path for path, _ in decisions)
    budgets = tuple(budget for _, budget in decisions)
    num_blocks = np.array([facts.num_blocks for facts in rows], dtype=np.int64)
    reads = np.array([budget.at_most for budget in budgets], dtype=np.int64)
    sparse = np.array([path is RowPath.SPARSE for path in paths], dtype=np.bool_)
    first = np.where(sparse, 0 if saves_state else spec.reserved.first, 0)
    stop = np.where(sparse, num_blocks - spec.reserved.last, 0)
    if saves_state and spec.state_advance is StateAdvance.EVERY_BLOCK:
        stop = num_blocks
    return StepPlan(
        spec.reserved,
        paths,
        budgets,
        _frozen(num_blocks),
        _frozen(np.array([facts.num_tokens for facts in rows], dtype=np.int64)),
        _frozen(_offsets(num_blocks)),
        _frozen(_offsets(reads)),
        _frozen(_work_items(first, stop, spec.chunk_blocks)),
        spec.state_advance,
    )


def _decide_row(spec: PlanSpec, facts: RowFacts) -> tuple[RowPath, RowBudget]:
    whole = RowBudget(facts.num_blocks, facts.num_blocks)
    if facts.num_blocks < 1:
        raise PlanError(f"row {facts}", "no blocks", "one or more", "give it a token first")
    if facts.layer in spec.dense_layers:
        return RowPath.SKIPPED, whole
    if facts.num_tokens < spec.min_context:
        return RowPath.SHORT, whole
    budget = spec.budget.bounds(facts, spec.reserved)
    if budget.at_most < min(spec.reserved.total, facts.num_blocks):
        raise PlanError(
            f"layer {facts.layer} head {facts.head}",
            f"a budget of {budget.at_most} blocks for {facts.num_blocks}",
            f"at least the {spec.reserved.total} reserved ones",
            "raise the budget or reserve fewer blocks",
        )
    if budget.at_least >= facts.num_blocks:
        return RowPath.FITS, whole
    return RowPath.SPARSE, RowBudget(
        budget.at_least, min(budget.at_most, facts.num_blocks), budget.rule
    )


def _offsets(counts: Int64s) -> Int64s:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _work_items(first: Int64s, stop: Int64s, chunk: int) -> Int64s:
    lengths = np.maximum(stop - first, 0)
    chunks = -(-lengths // chunk)
    row = np.repeat(np.arange(len(first), dtype=np.int64), chunks)
    index = np.arange(len(row), dtype=np.int64) - np.repeat(_offsets(chunks)[:-1], chunks)
    begin = first[row] + index * chunk
    return np.stack([row, begin, np.minimum(begin + chunk, stop[row])], axis=1)


def _frozen(array: Int64s) -> Int64s:
    array.flags.writeable = False
    return array


def plan_spec_of(config: VortexConfig) -> PlanSpec:
    """Budget, reserved blocks, dense layers and chunks of a configuration.

    ``schedule_policy`` is an expression here (see `parse_policy`); one that does not compile is an
    error and never the default. ``max_topk_val`` caps the scored blocks.
    """
    reserved = Reserved(config.block_reserved_bos, config.block_reserved_eos)
    budget: Budget = DefaultBudget(config.topk_val, config.topk_ratio)
    if config.schedule_policy is not None:
        budget = parse_policy(config.schedule_policy, topk=config.topk_val, ratio=config.topk_ratio)
    if config.max_topk_val is not None:
        budget = Capped(budget, config.max_topk_val + reserved.total)
    return PlanSpec(
        budget=budget,
        reserved=reserved,
        dense_layers=frozenset(config.layers_skip or ()),
        min_context=config.min_ctx,
        chunk_blocks=config.workload_chunk_size,
        state_advance=StateAdvance(config.state_advance),
    )


def rows_read_whole(plan: StepPlan, graph: Graph) -> tuple[bool, ...]:
    """Return for each row whether its plan alone makes attention read every block.

    Rows of skipped layers and short rows are dense under every flow. A row that fits its budget
    is dense under a flow that saves state, where state advances as in Vortex: nothing of the flow
    runs for that row. Under other flows the selection of the flow decides.
    """
    dense = {RowPath.SKIPPED, RowPath.SHORT}
    if graph.has_saves and plan.state_advance is StateAdvance.VORTEX:
        dense.add(RowPath.FITS)
    return tuple(path in dense for path in plan.paths)


def state_pages(plan: StepPlan, graph: Graph) -> Int32s:
    """Return for each row how many blocks, from block 0 on, this step's Saves write; int32 [rows].

    0 where no Save of the row takes effect. As in Vortex a row that selects covers all blocks but
    the reserved last ones. With `StateAdvance.EVERY_BLOCK` a row covers its complete blocks, and
    the unfinished one too under a flow that summarizes it.
    """
    if not graph.has_saves:
        return np.zeros(plan.num_rows, dtype=np.int32)
    match plan.state_advance:
        case StateAdvance.VORTEX:
            advances = np.array([plan.is_sparse(row) for row in range(plan.num_rows)])
            covered = plan.num_blocks - plan.reserved.last
        case StateAdvance.EVERY_BLOCK:
            advances = np.array([path is not RowPath.SKIPPED for path in plan.paths])
            complete = plan.num_tokens // graph.geometry.page_size
            covered = plan.num_blocks if graph.partial_pages else complete
    return np.where(advances, covered, 0).astype(np.int32)


def earlier_state_pages(spec: PlanSpec, rows: Sequence[RowFacts], graph: Graph) -> Int32s:
    """Return `state_pages` of the step before: each row with one token less; int32 [rows].

    A row whose first token is the new one has no step before, and 0 blocks.
    """
    size = graph.geometry.page_size
    before = [
        replace(
            facts,
            num_tokens=max(facts.num_tokens - 1, 1),
            num_blocks=max(-(-(facts.num_tokens - 1) // size), 1),
        )
        for facts in rows
    ]
    covered = state_pages(plan_step(spec, before), graph)
    had_step = np.array([facts.num_tokens > 1 for facts in rows])
    return np.where(had_step, covered, 0).astype(np.int32)


def row_budgets(plan: StepPlan, graph: Graph) -> dict[str, npt.NDArray[np.generic]]:
    """Return what kernels are told of each row: bounds, and what decides between them.

    ``at_least`` and ``at_most`` count candidates: pages without the reserved ones. Between them all
    that reach ``threshold`` are taken, or, where ``by_mass`` is 1, the fewest that hold the share
    ``mass`` of the softmax over scores. Where ``reads_all`` is 1 the row is dense. ``state_pages``
    are those of `state_pages`. Rows of the plan are requests times KV heads, the heads of a request
    together.
    """
    bounds = [_candidate_bounds(plan, row) for row in range(plan.num_rows)]
    rules = [budget.rule for budget in plan.budgets]
    shares = [rule.p if isinstance(rule, MassRule) else 0.0 for rule in rules]
    # minus infinity: every candidate reaches it, so the upper bound decides
    thresholds = [rule.threshold if isinstance(rule, ScoreRule) else -math.inf for rule in rules]
    return {
        "at_least": np.array([least for least, _ in bounds], dtype=np.int32),
        "at_most": np.array([most for _, most in bounds], dtype=np.int32),
        "threshold": np.array(thresholds, dtype=np.float32),
        "by_mass": np.array([share > 0 for share in shares], dtype=np.int8),
        "mass": np.array(shares, dtype=np.float64),
        "reads_all": np.array(rows_read_whole(plan, graph), dtype=np.int8),
        "state_pages": state_pages(plan, graph),
    }


def most_candidates(plan: StepPlan) -> int:
    """Return the most candidate pages that any row may select.

    Ignores rows that read all their candidates; returns 1 if there is no other.
    """
    found = [1]
    for row in range(plan.num_rows):
        _, most = _candidate_bounds(plan, row)
        if most < len(plan.candidates(row)):
            found.append(most)
    return max(found)


def _candidate_bounds(plan: StepPlan, row: int) -> tuple[int, int]:
    """Return how many candidates a row reads at least and at most, reserved blocks left out."""
    budget = plan.budgets[row]
    num_reserved = int(plan.num_blocks[row]) - len(plan.candidates(row))
    return max(budget.at_least - num_reserved, 0), max(budget.at_most - num_reserved, 0)
