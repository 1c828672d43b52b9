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
    """What a plan follows."""

    budget: Budget = field(default_factory=DefaultBudget)
    reserved: Reserved = field(default_factory=Reserved)
    dense_layers: frozenset[int] = frozenset()
    min_context: int = 0  # tokens below which a row stays dense
    state_advance: StateAdvance = StateAdvance.VORTEX

    def __post_init__(self) -> None:
        if self.min_context < 0:
            raise PlanError("plan.min_context", str(self.min_context), ">= 0", "raise it")


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """Rows in the order given; every count is 64 bits wide and read-only."""

    reserved: Reserved
    paths: tuple[RowPath, ...]
    budgets: tuple[RowBudget, ...]
    num_blocks: Int64s
    num_tokens: Int64s
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


def plan_step(spec: PlanSpec, rows: Sequence[RowFacts]) -> StepPlan:
    """Decide for every row; pure. Raises PlanError for a budget that cannot be kept."""
    decisions = [_decide_row(spec, facts) for facts in rows]
    return StepPlan(
        spec.reserved,
        tuple(path for path, _ in decisions),
        tuple(budget for _, budget in decisions),
        _frozen([facts.num_blocks for facts in rows]),
        _frozen([facts.num_tokens for facts in rows]),
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


def _frozen(counts: list[int]) -> Int64s:
    array = np.array(counts, dtype=np.int64)
    array.flags.writeable = False
    return array


def plan_spec_of(config: VortexConfig) -> PlanSpec:
    """Budget, reserved blocks and dense layers of a configuration.

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
        state_advance=StateAdvance(config.state_advance),
    )
