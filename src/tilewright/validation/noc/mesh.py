"""A square mesh with XY routing: its traffic, and its idle paths. NO1 to NO4, NO10.

Traffic is columns: who sends where and when. A cycle has 1000 ps there, a link takes a flit a cycle
and has a latency of 3, a packet has 4 flits.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tilewright.engine import EngineKind, EngineSpec, Statistics, build_engine
from tilewright.validation.engine_run import FLIT_BYTES, run_open, server_of, transfer_ends
from tilewright.validation.finding import Finding, Row, exact
from tilewright.validation.network import Network, Route
from tilewright.validation.workload import LinkSpec, Mesh, MeshSpec, Message, NetworkLoad, alone_ps

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
    in_turn = buffer_flits is not None
    spec = MeshSpec(
        side, CYCLE_PS, slow_units=(1, 3), buffer_flits=buffer_flits, round_robin=in_turn
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


def _paths(
    side: int, pattern: Pattern, buffer_flits: int | None
) -> tuple[tuple[LinkSpec, ...], dict[Pair, Route]]:
    """Return the links of a mesh, and the route of each pair of a pattern."""
    mesh = mesh_of(side, buffer_flits)
    if not pattern.ejects:
        return mesh.links, {pair: mesh.route(*pair) for pair in pattern.pairs}
    out = LinkSpec("eject", flit_ps=CYCLE_PS, latency_ps=CYCLE_PS, round_robin=True)
    last = len(mesh.links)
    return (*mesh.links, out), {pair: (*mesh.route(*pair), last) for pair in pattern.pairs}


def link_load(side: int, pattern: Pattern) -> int:
    """Of one packet from every pair, how many the busiest link carries."""
    _, routes = _paths(side, pattern, None)
    return max(Counter(link for pair in pattern.pairs for link in routes[pair]).values())


def network_load(
    side: int, pattern: Pattern, traffic: Traffic, buffer_flits: int | None
) -> NetworkLoad:
    """The same traffic for models that go message by message."""
    links, routes = _paths(side, pattern, buffer_flits)
    columns = (traffic.sources.tolist(), traffic.targets.tolist(), traffic.at_ps.tolist())
    messages = []
    for number, (source, target, at_ps) in enumerate(zip(*columns, strict=True)):
        route = routes[source, target]
        messages.append(Message(number, at_ps, route, (0,) * len(route), PACKET_FLITS))
    return NetworkLoad(links, tuple(messages))


def run_traffic(
    side: int, pattern: Pattern, traffic: Traffic, buffer_flits: int | None, kind: EngineKind
) -> MeshRun:
    """All packets in one task graph; ids follow the order of injection."""
    links, paths = _paths(side, pattern, buffer_flits)
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    for link in links:
        engine.add_server(server_of(link))
    numbers = np.full((side**2, side**2), -1, np.int64)
    for (source, target), route in paths.items():
        if source != target:
            numbers[source, target] = engine.add_route(route)
    routes, num_bytes = numbers[traffic.sources, traffic.targets], PACKET_FLITS * FLIT_BYTES
    sizes = np.full(len(routes), num_bytes)
    ends_ps = transfer_ends(engine, routes, sizes, traffic.at_ps)
    return MeshRun(ends_ps, engine.statistics())


FLITS = 16
FLIT_CYCLES, LATENCY_CYCLES = 1, 3  # of a link; a cycle is one picosecond here
APART_PS = 1_000  # longer than any path takes


def check_idle(kind: EngineKind, *, mesh: MeshSpec) -> Finding:
    """Pairs of nodes whose packet, alone on its way, takes another time than the closed form."""
    network = Mesh(mesh)
    routes = [network.route(*pair) for pair in all_pairs(mesh.num_nodes, with_self=False)]
    ends_ps = _run_apart(network.links, routes, APART_PS, kind)
    wrong = 0
    for number, (route, end_ps) in enumerate(zip(routes, ends_ps, strict=True)):
        links = [network.links[link] for link in route]
        wrong += end_ps != number * APART_PS + alone_ps(links, FLITS)
    return exact(0, wrong, "pairs")


def check_corners(kind: EngineKind, *, mesh: MeshSpec, cycles: int) -> Finding:
    """From corner to corner."""
    network = Mesh(mesh)
    route = network.route(0, mesh.num_nodes - 1)
    return exact(cycles, _run_apart(network.links, [route], 0, kind)[0], "cycles")


def check_ring(kind: EngineKind, *, order: tuple[int, ...], dilation: int) -> Finding:
    """All send to their successor at once: no link is wanted twice, so the longest way decides."""
    line = Network(1, len(order))
    links = tuple(
        LinkSpec(f"{one} to {other}", flit_ps=FLIT_CYCLES, latency_ps=LATENCY_CYCLES)
        for one, other in line.wires
    )
    routes = [line.route(*pair) for pair in zip(order, (*order[1:], order[0]), strict=True)]
    ends_ps = _run_apart(links, routes, 0, kind)
    expected = dilation * (FLIT_CYCLES + LATENCY_CYCLES) + (FLITS - 1) * FLIT_CYCLES
    return exact(expected, max(ends_ps), "cycles")


def _run_apart(
    links: tuple[LinkSpec, ...], routes: list[tuple[int, ...]], apart_ps: int, kind: EngineKind
) -> list[int]:
    messages = tuple(
        Message(number, number * apart_ps, route, (0,) * len(route), FLITS)
        for number, route in enumerate(routes)
    )
    ends_ps = run_open(NetworkLoad(links, messages), kind).delivered_ps
    return [ends_ps[number] for number in range(len(routes))]


def check_hops(_kind: EngineKind, *, side: int, with_self: bool, expected: Fraction) -> Finding:
    mesh = Mesh(MeshSpec(side))
    hops = [len(mesh.route(*pair)) for pair in all_pairs(side**2, with_self=with_self)]
    return exact(expected, Fraction(sum(hops), len(hops)), "hops")


def check_links(_kind: EngineKind, *, side: int) -> Finding:
    mesh = Mesh(MeshSpec(side))
    routes = (mesh.route(*pair) for pair in all_pairs(side**2, with_self=False))
    return exact(4 * side * (side - 1), len({link for route in routes for link in route}), "links")


def _idle() -> Iterator[Row]:
    fast = partial(MeshSpec, unit_ps=1, slow_units=(FLIT_CYCLES, LATENCY_CYCLES))
    for law, mesh, cycles, what in (
        ("NO1", fast(4), 39, "4 x 4"),
        ("NO1", fast(8), 71, "8 x 8"),
        ("NO2", MeshSpec(8, unit_ps=1), 104, "8 x 8 with a slow boundary"),
    ):
        corners = partial(check_corners, mesh=mesh, cycles=cycles)
        yield f"{law} corner to corner, {what}", corners
        yield f"{law} wrong idle paths, {what}", partial(check_idle, mesh=mesh)


def _counted(side: int) -> Iterator[Row]:
    means = ((True, Fraction(2 * (side**2 - 1), 3 * side)), (False, Fraction(2 * side, 3)))
    for (with_self, expected), law in zip(means, ("NO3", "NO4"), strict=True):
        check = partial(check_hops, side=side, with_self=with_self, expected=expected)
        yield f"{law} mean hops, {side} x {side}", check
    yield f"NO10 directed links, {side} x {side}", partial(check_links, side=side)


def _rings() -> Iterator[Row]:
    folded = (0, 2, 4, 6, 7, 5, 3, 1)
    natural = partial(check_ring, order=tuple(range(8)), dilation=7)
    yield "NO1 ring on a line of 8, in natural order", natural
    even_odd = partial(check_ring, order=folded, dilation=2)
    yield "NO1 ring on a line of 8, even up, odd down", even_odd


def oracles() -> Iterator[Row]:
    yield from (*_idle(), *_counted(4), *_counted(8), *_rings())
