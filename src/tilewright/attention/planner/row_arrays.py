"""What the plan of a step says about each row, as the arrays that kernels read."""

import math

import numpy as np
import numpy.typing as npt

from tilewright.attention.planner.plan import RowPath, StepPlan
from tilewright.attention.planner.rule import Exactly, RowBudget, ScoreRule
from tilewright.errors import AttentionError

__all__ = ("row_budgets",)


def row_budgets(plan: StepPlan) -> dict[str, npt.NDArray[np.generic]]:
    """Arguments ``at_least``, ``at_most``, ``threshold`` and ``reads_all``, a value for each row.

    Counts are of candidates: without the reserved pages. Rows of the plan are requests times KV
    heads, the heads of a request together.
    """
    rows = range(plan.num_rows)
    reserved = [int(plan.num_blocks[row]) - len(plan.candidates(row)) for row in rows]
    least = [max(plan.budgets[row].at_least - reserved[row], 0) for row in rows]
    most = [max(plan.budgets[row].at_most - reserved[row], 0) for row in rows]
    dense = (RowPath.SKIPPED, RowPath.SHORT)
    return {
        "at_least": np.array(least, dtype=np.int32),
        "at_most": np.array(most, dtype=np.int32),
        "threshold": np.array([_threshold(item) for item in plan.budgets], dtype=np.float32),
        "reads_all": np.array([path in dense for path in plan.paths], dtype=np.int8),
    }


def _threshold(budget: RowBudget) -> float:
    match budget.rule:
        case Exactly():
            return -math.inf  # every candidate reaches it, so the upper bound decides
        case ScoreRule(threshold=value):
            return value
        case _:
            fix = "say it in the flow, or use the reference backend"
            raise AttentionError("plan", str(budget.rule), "a count or a score", fix)
