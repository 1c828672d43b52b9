"""A mesh with XY routing: idle paths, mean hops, and a ring laid on a line. NO1 to NO4, NO10."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from tilewright.engine import EngineKind
from tilewright.validation.engine_run import run_open
from tilewright.validation.finding import Finding, Row, exact
from tilewright.validation.noc.mesh_traffic import all_pairs
from tilewright.validation.workload import LinkSpec, Mesh, MeshSpec, Message, NetworkLoad

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
        head_ps = sum(link.flit_ps + link.latency_ps for link in links)
        rest_ps = (FLITS - 1) * max(link.flit_ps for link in links)
        wrong += end_ps != number * APART_PS + head_ps + rest_ps
    return exact(0, wrong, "pairs")


def check_corners(kind: EngineKind, *, mesh: MeshSpec, cycles: int) -> Finding:
    """From corner to corner."""
    network = Mesh(mesh)
    route = network.route(0, mesh.num_nodes - 1)
    return exact(cycles, _run_apart(network.links, [route], 0, kind)[0], "cycles")


def check_ring(kind: EngineKind, *, order: tuple[int, ...], dilation: int) -> Finding:
    """All send to their successor at once: no link is wanted twice, so the longest way decides."""
    num_nodes = len(order)
    east = [_line_link(f"{node}.east") for node in range(num_nodes - 1)]
    west = [_line_link(f"{node}.west") for node in range(num_nodes - 1)]
    routes = []
    for one, other in zip(order, (*order[1:], order[0]), strict=True):
        between = range(min(one, other), max(one, other))
        steps = between if one < other else [node + num_nodes - 1 for node in reversed(between)]
        routes.append(tuple(steps))
    ends_ps = _run_apart((*east, *west), routes, 0, kind)
    expected = dilation * (FLIT_CYCLES + LATENCY_CYCLES) + (FLITS - 1) * FLIT_CYCLES
    return exact(expected, max(ends_ps), "cycles")


def _line_link(name: str) -> LinkSpec:
    return LinkSpec(name, flit_ps=FLIT_CYCLES, latency_ps=LATENCY_CYCLES)


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
    yield (
        "NO1 ring on a line of 8, even up, odd down",
        partial(check_ring, order=folded, dilation=2),
    )


def oracles() -> Iterator[Row]:
    yield from (*_idle(), *_counted(4), *_counted(8), *_rings())
