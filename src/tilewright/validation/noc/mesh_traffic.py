"""Traffic on a square mesh as columns: who sends where and when, and what an engine makes of it.

A cycle has 1000 ps. A link takes a flit a cycle and has a latency of 3; a packet has 4 flits.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tilewright.engine import EngineKind, EngineSpec, Statistics, TaskGraph, build_engine
from tilewright.validation.engine_run import FLIT_BYTES, finish, server_of
from tilewright.validation.workload import LinkSpec, Mesh, MeshSpec, Message, NetworkLoad

CYCLE_PS = 1_000
PACKET_FLITS = 4

Column = npt.NDArray[np.int64]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which pairs send to each other on a k x k mesh, all equally often.

    ``ejects`` puts a link of one flit a cycle behind the target, as in a hot spot.
    """

    name: str
    pairs: tuple[Pair, ...]
    ejects: bool = False

    @property
    def num_senders(self) -> int:
        return len({source for source, _ in self.pairs})


@dataclass(frozen=True, slots=True)
class Traffic:
    """One packet a row, in the order of injection."""

    sources: Column
    targets: Column
    at_ps: Column


@dataclass(frozen=True, slots=True)
class MeshRun:
    """When each packet of a traffic was delivered, and the counters."""

    ends_ps: Column
    statistics: Statistics

    @property
    def last_cycle(self) -> Fraction:
        return Fraction(int(self.ends_ps.max()), CYCLE_PS)


def mesh_of(side: int, buffer_flits: int | None) -> Mesh:
    """Links of one flit a cycle everywhere; with buffers, they arbitrate in turn."""
    spec = MeshSpec(
        side,
        unit_ps=CYCLE_PS,
        slow_units=(1, 3),
        buffer_flits=buffer_flits,
        round_robin=buffer_flits is not None,
    )
    return Mesh(spec)


def random_traffic(pattern: Pattern, rate: float, cycles: int, seed: int) -> Traffic:
    """Each sender injects ``rate`` flits a cycle, at random times, to random targets of its own."""
    generator = np.random.default_rng(seed)
    count = round(pattern.num_senders * rate * cycles / PACKET_FLITS)
    picks = generator.integers(0, len(pattern.pairs), count)
    return _traffic(pattern, picks, cycles, generator)


def balanced_traffic(pattern: Pattern, rate: float, rounds: int, seed: int) -> Traffic:
    """Each pair sends ``rounds`` packets, in random order, offered at ``rate`` a sender.

    Since the pairs are exactly equal, no run can be faster than the pattern's limit.
    """
    generator = np.random.default_rng(seed)
    picks = generator.permutation(np.repeat(np.arange(len(pattern.pairs)), rounds))
    cycles = round(len(picks) * PACKET_FLITS / pattern.num_senders / rate)
    return _traffic(pattern, picks, cycles, generator)


def _traffic(
    pattern: Pattern, picks: Column, cycles: int, generator: np.random.Generator
) -> Traffic:
    ends = np.array(pattern.pairs, np.int64)[picks]
    at_ps = np.sort(generator.integers(0, cycles, len(picks))) * CYCLE_PS
    moves = ends[:, 0] != ends[:, 1]  # who sends to himself uses no link
    return Traffic(ends[moves, 0], ends[moves, 1], at_ps[moves])


def all_pairs(num_nodes: int, *, with_self: bool) -> list[tuple[int, int]]:
    nodes = range(num_nodes)
    return [(one, other) for one in nodes for other in nodes if with_self or one != other]


def _links(mesh: Mesh, *, ejects: bool) -> tuple[LinkSpec, ...]:
    out = LinkSpec("eject", flit_ps=CYCLE_PS, latency_ps=CYCLE_PS, round_robin=True)
    return (*mesh.links, out) if ejects else mesh.links


def _route(mesh: Mesh, pair: Pair, *, ejects: bool) -> tuple[int, ...]:
    route = mesh.route(*pair)
    return (*route, len(mesh.links)) if ejects else route


def link_load(side: int, pattern: Pattern) -> int:
    """Of one packet from every pair, how many the busiest link carries."""
    mesh = mesh_of(side, None)
    routes = (_route(mesh, pair, ejects=pattern.ejects) for pair in pattern.pairs)
    return max(Counter(link for route in routes for link in route).values())


def network_load(
    side: int, pattern: Pattern, traffic: Traffic, buffer_flits: int | None
) -> NetworkLoad:
    """The same traffic for models that go message by message."""
    mesh = mesh_of(side, buffer_flits)
    columns = (traffic.sources.tolist(), traffic.targets.tolist(), traffic.at_ps.tolist())
    messages = []
    for number, (source, target, at_ps) in enumerate(zip(*columns, strict=True)):
        route = _route(mesh, (source, target), ejects=pattern.ejects)
        messages.append(Message(number, at_ps, route, (0,) * len(route), PACKET_FLITS))
    return NetworkLoad(_links(mesh, ejects=pattern.ejects), tuple(messages))


def run_traffic(
    side: int, pattern: Pattern, traffic: Traffic, buffer_flits: int | None, kind: EngineKind
) -> MeshRun:
    """All packets in one task graph; ids follow the order of injection."""
    mesh = mesh_of(side, buffer_flits)
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    for link in _links(mesh, ejects=pattern.ejects):
        engine.add_server(server_of(link))
    numbers = np.full((side**2, side**2), -1, np.int64)
    for source, target in dict.fromkeys(pattern.pairs):
        if source != target:
            route = _route(mesh, (source, target), ejects=pattern.ejects)
            numbers[source, target] = engine.add_route(route)
    count = len(traffic.at_ps)
    graph = TaskGraph()
    graph.transfers(
        numbers[traffic.sources, traffic.targets],
        num_bytes=np.full(count, PACKET_FLITS * FLIT_BYTES),
        delays_ps=traffic.at_ps,
        effects=np.arange(count),
    )
    finish(engine, graph)
    times_ps, packets = engine.take_effect_columns()
    ends_ps = np.empty(count, np.int64)
    ends_ps[packets] = times_ps
    return MeshRun(ends_ps, engine.statistics())
