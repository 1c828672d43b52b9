"""Which algorithm can carry out which operation: data, and what users add to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType

from tilewright.collectives.algorithms.direct import plan_direct
from tilewright.collectives.algorithms.grid import plan_mesh_2d, plan_torus_2d
from tilewright.collectives.algorithms.halving import plan_halving_doubling
from tilewright.collectives.algorithms.hierarchical import plan_hierarchical
from tilewright.collectives.algorithms.ring import plan_bidirectional_ring, plan_ring
from tilewright.collectives.algorithms.tree import plan_double_tree
from tilewright.collectives.operation import Call, Operation, goal_of, start_of
from tilewright.collectives.plan import Move, Plan, Proof, check_plan
from tilewright.errors import CollectiveError, RegistryError

AUTO_ALGORITHM = "auto"
"""No algorithm: the one whose prediction is least."""

PlanFunction = Callable[[Call, int], Plan]
"""From a call and a lane to a plan."""

RING_LIKE = frozenset(
    (
        Operation.ALL_REDUCE,
        Operation.REDUCE_SCATTER,
        Operation.ALL_GATHER,
        Operation.BROADCAST,
        Operation.REDUCE,
    )
)
SCATTERING = frozenset((Operation.ALL_REDUCE, Operation.REDUCE_SCATTER, Operation.ALL_GATHER))
REDUCING = frozenset((Operation.ALL_REDUCE,))
TREE_LIKE = frozenset((Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE))


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to carry out some operations.

    ``suits_many``: the messages of a rank do not become more with the ranks.
    """

    name: str
    operations: frozenset[Operation]
    plan: PlanFunction
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


ALGORITHMS = build_table(
    (
        Algorithm("ring", RING_LIKE, plan_ring),
        Algorithm("bidirectional_ring", RING_LIKE, plan_bidirectional_ring),
        Algorithm("double_tree", TREE_LIKE, plan_double_tree),
        Algorithm("halving_doubling", SCATTERING, plan_halving_doubling),
        Algorithm("torus_2d", SCATTERING, plan_torus_2d),
        Algorithm("mesh_2d", SCATTERING, plan_mesh_2d),
        Algorithm("direct", frozenset(Operation), plan_direct),
        Algorithm("hierarchical", REDUCING, plan_hierarchical, suits_many=True),
    )
)


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that was proved, and what the proof says of its steps."""

    plan: Plan
    proof: Proof

    @cached_property
    def edges(self) -> frozenset[tuple[int, int]]:
        """Ranks, and whom they send to."""
        return frozenset(
            (rank, step.peer)
            for rank, steps in enumerate(self.plan.steps)
            for step in steps
            if step.move is Move.SEND
        )


@cache
def checked_plan(algorithm: Algorithm, call: Call, lane: int) -> CheckedPlan:
    """The plan of an algorithm for a lane; one that is wrong is refused."""
    where = f"{algorithm.name} {call.operation.value} of {call.num_ranks} ranks, lane {lane}"
    if call.num_ranks == 1:
        return CheckedPlan(Plan(1, ((),)), Proof())
    plan = algorithm.plan(call, lane)
    start, goal = start_of(call, plan.num_blocks), goal_of(call, plan.num_blocks)
    return CheckedPlan(plan, check_plan(plan, start, goal, where))


def find_algorithm(
    name: str, operation: Operation, algorithms: Mapping[str, Algorithm] = ALGORITHMS
) -> Algorithm:
    """By name; one that cannot carry out the operation is refused."""
    algorithm = algorithms.get(name)
    able = [each.name for each in algorithms.values() if operation in each.operations]
    if algorithm is None or operation not in algorithm.operations:
        found = f"the algorithm {name!r}"
        expected = f"one that can: {', '.join(able)}"
        raise CollectiveError(operation.value, found, expected, "name one of these, or 'auto'")
    return algorithm
