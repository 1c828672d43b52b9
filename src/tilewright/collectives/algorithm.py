"""An algorithm of collectives as data, and the proof of its plans."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from tilewright.collectives.operation import Call, Operation, goal_of, start_of
from tilewright.collectives.plan import Plan, Proof, check_plan
from tilewright.errors import RegistryError

AUTO_ALGORITHM = "auto"
"""No algorithm: the one whose prediction is least."""

PlanFunction = Callable[[Call, int], Plan]
"""From a call and a lane to a plan."""

NUM_VARIANTS = 64
"""Lanes take turns in so many plans of an algorithm."""

SCATTERING = frozenset((Operation.ALL_REDUCE, Operation.REDUCE_SCATTER, Operation.ALL_GATHER))
"""Operations of algorithms that give each rank a part of the sum first."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to carry out some operations.

    ``preference``: of equal predictions the least is taken. ``suits_many``: the messages of a rank
    do not become more with the ranks.
    """

    name: str
    operations: frozenset[Operation]
    plan: PlanFunction
    preference: int = 100
    suits_many: bool = False


def build_table(algorithms: Iterable[Algorithm]) -> Mapping[str, Algorithm]:
    """A read-only table by name; two algorithms of one name are refused."""
    table: dict[str, Algorithm] = {}
    for algorithm in algorithms:
        if algorithm.name in table:
            found = f"two algorithms {algorithm.name!r}"
            raise RegistryError("collectives", found, "one owner", "rename one")
        table[algorithm.name] = algorithm
    return MappingProxyType(table)


class CheckedPlan(NamedTuple):
    """A plan that was proved, and what the proof says of its steps."""

    plan: Plan
    proof: Proof


@cache
def checked_plan(algorithm: Algorithm, call: Call, lane: int) -> CheckedPlan:
    """The plan of an algorithm for a lane; one that is wrong is refused."""
    where = f"{algorithm.name} {call.operation.value} of {call.num_ranks} ranks, lane {lane}"
    if call.num_ranks == 1:
        return CheckedPlan(Plan(1, ((),)), Proof())
    plan = algorithm.plan(call, lane)
    start, goal = start_of(call, plan.num_blocks), goal_of(call, plan.num_blocks)
    return CheckedPlan(plan, check_plan(plan, start, goal, where))
