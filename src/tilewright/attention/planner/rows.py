"""What the plan of a step says about each row: whose state advances, and bounds for kernels."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import Graph
from tilewright.attention.planner.budget import MassRule, RowFacts, ScoreRule
from tilewright.attention.planner.plan import PlanSpec, RowPath, StateAdvance, StepPlan, plan_step

Int32s = npt.NDArray[np.int32]


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
