"""What no collective can beat on a mesh or a torus, in S/B: LB1 to LB5.

Each bound is counted on the wires of the network, and held against plans that run there: the row
shows the run that comes nearest. Latencies are next to nothing, since the bounds leave them out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from tilewright.collectives.operation import Operation
from tilewright.engine import EngineKind
from tilewright.units import PS_PER_US
from tilewright.validation.collective.closed_form import table_plan
from tilewright.validation.collective.run import Wiring, run_plans
from tilewright.validation.finding import Finding, Row, at_least, printed
from tilewright.validation.network import LinkGraph, Network, neighbour_cycle

WIRING = Wiring(latency_ps=1, bytes_per_us=64_000, packet_flits=256)
NUM_BYTES = {4: 2**18, 8: 2**20}  # S, by the side of the network
ALL_WAYS = (0, 2, 8, 10)  # lanes along rows or columns first, forwards or backwards
SCATTERING = ("ring", "bidirectional_ring", "halving_doubling", "torus_2d", "mesh_2d", "direct")
REDUCING = (*SCATTERING, "double_tree", "hierarchical")
HALVES = (Operation.REDUCE_SCATTER, Operation.ALL_GATHER)


def into_a_corner(graph: LinkGraph) -> Fraction:
    """Return what the node with the fewest links needs for the parts of all others."""
    least = min(graph.leaving(frozenset((node,))) for node in range(graph.num_nodes))
    return Fraction(graph.num_nodes - 1, graph.num_nodes * least)


def into_a_corner_twice(graph: LinkGraph) -> Fraction:
    """Return that once to sum and once to gather."""
    return 2 * into_a_corner(graph)


def over_all_links(graph: LinkGraph) -> Fraction:
    """Return what sums need: an element is sent p - 1 times to be summed, and again to be told."""
    return Fraction(2 * (graph.num_nodes - 1), sum(rate for _, _, rate in graph.links))


def over_the_middle(graph: LinkGraph) -> Fraction:
    """Return what one half of the nodes needs for the parts of the other half."""
    half = frozenset(range(graph.num_nodes // 2))
    return Fraction(
        len(half) * (graph.num_nodes - len(half)), graph.num_nodes * graph.leaving(half)
    )


@dataclass(frozen=True, slots=True)
class BoundLaw:
    """A bound, its published figures for sides of 4 and 8, and what is held against it."""

    name: str
    count: Callable[[LinkGraph], Fraction]  # of a buffer of one and rates of one
    figures: tuple[str, str]
    operations: tuple[Operation, ...]
    algorithms: tuple[str, ...]
    wraps: bool = False

    def network(self, side: int) -> Network:
        return Network(side, side, wraps=self.wraps)


LAWS = (
    BoundLaw("LB1 mesh reduce-scatter and all-gather", into_a_corner,
             ("0.4688", "0.4922"), HALVES, SCATTERING),
    BoundLaw("LB2 mesh all-reduce in two halves", into_a_corner_twice,
             ("0.9375", "0.9844"), (Operation.ALL_REDUCE,), SCATTERING),
    BoundLaw("LB3 mesh all-reduce", over_all_links,
             ("0.625", "0.5625"), (Operation.ALL_REDUCE,), REDUCING),
    BoundLaw("LB4 torus reduce-scatter and all-gather", into_a_corner,
             ("0.2344", "0.2461"), HALVES, SCATTERING, wraps=True),
    BoundLaw("LB4 torus all-reduce in two halves", into_a_corner_twice,
             ("0.4688", "0.4922"), (Operation.ALL_REDUCE,), SCATTERING, wraps=True),
    BoundLaw("LB5 mesh all-to-all", over_the_middle,
             ("1.0", "2.0"), (Operation.ALL_TO_ALL,), ("direct",)),
)  # fmt: skip


def check_count(_kind: EngineKind, *, law: BoundLaw, side: int, figure: str) -> Finding:
    """The published figure, from the wires of the network."""
    return printed(figure, law.count(law.network(side).graph), "S/B")


def check_runs(kind: EngineKind, *, law: BoundLaw, side: int) -> Finding:
    """Every algorithm that can: the one that comes nearest."""
    network, num_bytes = law.network(side), NUM_BYTES[side]
    unit_ps = Fraction(num_bytes * PS_PER_US, WIRING.bytes_per_us)
    times = [
        run_ps(kind, network, algorithm, operation, num_bytes)
        for operation in law.operations
        for algorithm in law.algorithms
    ]
    return at_least(law.count(network.graph), min(times) / unit_ps, "S/B")


@cache
def run_ps(
    kind: EngineKind, network: Network, algorithm: str, operation: Operation, num_bytes: int
) -> int:
    """Lanes that share the buffer where an algorithm has some; rings go from neighbour to
    neighbour.
    """
    ranks = network.num_nodes
    lanes = ALL_WAYS if algorithm in ("torus_2d", "mesh_2d") else (0,)
    plans = [table_plan(algorithm, operation, ranks, lane) for lane in lanes]
    nodes = neighbour_cycle(network.rows, network.columns) if "ring" in algorithm else None
    held_bytes = num_bytes * (ranks if operation is Operation.ALL_TO_ALL else 1)
    return run_plans(kind, network, WIRING, plans, held_bytes, nodes=nodes)


def oracles() -> Iterator[Row]:
    for law in LAWS:
        for side, figure in zip(NUM_BYTES, law.figures, strict=True):
            where = f"{law.name}, {side} x {side}"
            yield f"{where}: counted", partial(check_count, law=law, side=side, figure=figure)
            yield f"{where}: nearest run", partial(check_runs, law=law, side=side)
