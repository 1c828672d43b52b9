"""Plans and kernels of collective operations, process groups, workers."""

from tilewright.collectives.algorithm import Algorithm, build_table, checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move, Plan, Script, Step

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
