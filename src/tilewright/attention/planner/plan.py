"""The plan of one decode step over all rows of a layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.planner.budget import (
    Budget,
    Capped,
    DefaultBudget,
    Reserved,
    RowBudget,
    RowFacts,
)
from tilewright.attention.planner.policy import parse_policy
from tilewright.errors import PlanError

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
