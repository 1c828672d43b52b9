"""What the plan of a step says about each row, as the arrays that kernels read."""

import math

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import Graph
from tilewright.attention.planner.advance import rows_read_whole, state_pages
from tilewright.attention.planner.plan import StepPlan
from tilewright.attention.planner.rule import MassRule, RowBudget, ScoreRule


def row_budgets(plan: StepPlan, graph: Graph) -> dict[str, npt.NDArray[np.generic]]:
    """Return what kernels are told of each row: bounds, and what decides between them.

    ``at_least`` and ``at_most`` count candidates: pages without the reserved ones. Between them all
    that reach ``threshold`` are taken, or, where ``by_mass`` is 1, the fewest that hold the share
    ``mass`` of the softmax over scores. Where ``reads_all`` is 1 the row is dense. ``state_pages``
    are those of `state_pages`. Rows of the plan are requests times KV heads, the heads of a request
    together.
    """
    rows = range(plan.num_rows)
    reserved = [_num_reserved(plan, row) for row in rows]
    least = [max(plan.budgets[row].at_least - reserved[row], 0) for row in rows]
    most = [max(plan.budgets[row].at_most - reserved[row], 0) for row in rows]
    shares = [_share(item) for item in plan.budgets]
    return {
        "at_least": np.array(least, dtype=np.int32),
        "at_most": np.array(most, dtype=np.int32),
        "threshold": np.array([_threshold(item) for item in plan.budgets], dtype=np.float32),
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
        most = max(plan.budgets[row].at_most - _num_reserved(plan, row), 0)
        if most < len(plan.candidates(row)):
            found.append(most)
    return max(found)


def _num_reserved(plan: StepPlan, row: int) -> int:
    return int(plan.num_blocks[row]) - len(plan.candidates(row))


def _threshold(budget: RowBudget) -> float:
    if isinstance(budget.rule, ScoreRule):
        return budget.rule.threshold
    return -math.inf  # every candidate reaches it, so the upper bound decides


def _share(budget: RowBudget) -> float:
    return budget.rule.p if isinstance(budget.rule, MassRule) else 0.0
