"""Plans and kernels of collective operations, process groups, workers."""

from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move, Plan, Step
from tilewright.collectives.script import Script
from tilewright.collectives.table import ALGORITHMS, Algorithm, build_table, checked_plan

__all__ = (
    "ALGORITHMS",
    "Algorithm",
    "Call",
    "Move",
    "Operation",
    "Plan",
    "Script",
    "Step",
    "build_table",
    "checked_plan",
)
