from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.shapes import all_requests, cube_of, machines, single_die
from tilewright.errors import SpecError
from tilewright.machine.coords import Side
from tilewright.machine.deadlock import (
    EdgeArray,
    check_no_deadlock,
    dependency_edges,
    find_cycle,
)
from tilewright.machine.node import LinkKind, reverse_link
from tilewright.machine.route import LevelScheme, RouteTable, Traffic, plan_levels
from tilewright.machine.spec import (
    CrossbarSpec,
    FabricSpec,
    MachineSpec,
    MeshSpec,
    RingSpec,
    SipSpec,
)
from tilewright.machine.topology.machine import build_topology

NUM_CHANNELS = 8
channels = st.integers(0, NUM_CHANNELS - 1)


def edge_array(edges: set[tuple[int, int]]) -> EdgeArray:
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)


def edges_of_routes(
    routes: Iterable[Iterable[tuple[int, int]]],
) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Each channel of a route waits for the next one."""
    return {edge for route in routes for edge in pairwise(route)}


def cycle_of(routes: Iterable[Iterable[tuple[int, int]]]) -> list[tuple[int, int]]:
    """A cycle of waiting channels, by links and levels or any other numbers; empty: none."""
    edges = edges_of_routes(routes)
    limit = 1 + max((channel[1] for edge in edges for channel in edge), default=0)
    keys = {(one[0] * limit + one[1], two[0] * limit + two[1]) for one, two in edges}
    num_keys = 1 + max((key for pair in keys for key in pair), default=-1)
    return [divmod(key, limit) for key in find_cycle(edge_array(keys), num_keys)]


def has_cycle(edges: set[tuple[int, int]]) -> bool:
    """By the definition: someone reaches itself."""
    reached = set(edges)
    for _ in range(NUM_CHANNELS):
        reached |= {
            (one, two) for one, middle in reached for start, two in edges if start == middle
        }
    return any(one == other for one, other in reached)


@given(st.sets(st.tuples(channels, channels), max_size=14))
def test_a_cycle_is_found_exactly_when_there_is_one(edges: set[tuple[int, int]]) -> None:
    cycle = find_cycle(edge_array(edges), NUM_CHANNELS)
    assert bool(cycle) == has_cycle(edges)
    assert all(pair in edges for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert len(set(cycle)) == len(cycle)


@given(st.sets(st.tuples(channels, channels), max_size=20))
def test_a_graph_that_only_goes_up_has_no_cycle(edges: set[tuple[int, int]]) -> None:
    upward = {(one, other) for one, other in edges if one < other}
    assert find_cycle(edge_array(upward), NUM_CHANNELS) == []


SMALL = {
    "mesh with a hole, two SIPs, switch": MachineSpec(
        sip=SipSpec(columns=2, rows=2), cube=cube_of(4, MeshSpec(rows=4, columns=4), 2)
    ),
    "rings in a ring": MachineSpec(
        sip=SipSpec(count=3, columns=2, rows=2),
        fabric=FabricSpec(kind="ring"),
        cube=cube_of(1, RingSpec(routers=5), 3),
    ),
    "crossbars in a torus": MachineSpec(
        sip=SipSpec(count=4, columns=1, rows=2),
        fabric=FabricSpec(kind="torus", columns=2),
        cube=cube_of(2, CrossbarSpec(), 2),
    ),
    "ahbm's die in three rows": MachineSpec(
        sip=SipSpec(count=1, columns=2, rows=3), cube=cube_of(4, MeshSpec(), 4)
    ),
    "one die": single_die(8, MeshSpec()),
}


def routes_of(spec: MachineSpec) -> RouteTable:
    topology = build_topology(spec)
    return RouteTable(topology, plan_levels(topology.die.layout.num_sublevels))


def edges(routes: RouteTable) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    num_levels = routes.levels.num_levels
    return {
        (divmod(int(one), num_levels), divmod(int(other), num_levels))
        for one, other in dependency_edges(routes)
    }


@pytest.mark.parametrize("name", SMALL)
def test_the_graph_has_exactly_the_waits_of_all_routes(name: str) -> None:
    routes = routes_of(SMALL[name])
    assert edges(routes) == edges_of_routes(all_requests(routes))


@settings(max_examples=8)
@given(spec=machines(most_sips=3, most_cubes=2, most_pes=2))
def test_the_graph_of_any_small_machine_has_exactly_the_waits_of_all_routes(
    spec: MachineSpec,
) -> None:
    routes = routes_of(spec)
    assert edges(routes) == edges_of_routes(all_requests(routes))


@settings(max_examples=40)
@given(spec=machines(most_sips=9, most_cubes=4, most_pes=8))
def test_no_machine_of_any_shape_can_deadlock(spec: MachineSpec) -> None:
    check_no_deadlock(routes_of(spec))


@pytest.mark.parametrize("name", ["crossbars in a torus", "one die"])
def test_no_class_of_traffic_can_deadlock_and_they_share_no_channel(name: str) -> None:
    routes = routes_of(SMALL[name])
    nodes = list(enumerate(routes.topology.nodes))
    channels = []
    for traffic in Traffic:
        found = set()
        for source in (number for number, node in nodes if node.kind.may_request):
            for target in (number for number, node in nodes if node.kind.is_terminal):
                if source != target:
                    ends = (target, source) if traffic is Traffic.RESPONSE else (source, target)
                    found.add(routes.find(*ends, traffic, source % 2))
        assert not cycle_of(found)
        channels.append({channel for route in found for _, channel in route})
    assert not channels[0] & channels[1]
    assert not channels[0] & channels[2]
    assert not channels[1] & channels[2]


def test_the_default_machine_has_no_cycle() -> None:
    check_no_deadlock(routes_of(MachineSpec()))


def test_turning_and_arriving_at_one_level_would_deadlock() -> None:
    two_levels = LevelScheme(
        MappingProxyType({Side.EAST: 0, Side.WEST: 0, Side.NORTH: 1, Side.SOUTH: 1}),
        last=1,
        num_levels=2,
    )
    routes = replace(routes_of(MachineSpec()), levels=two_levels)
    with pytest.raises(SpecError, match="a cycle of waiting packets") as failure:
        check_no_deadlock(routes)
    assert "sip0.cube" in failure.value.found
    assert "level 1" in failure.value.found


def test_a_refused_cycle_is_a_real_one() -> None:
    """Every channel that the message names waits for the next one, the last for the first."""
    one_level = LevelScheme(MappingProxyType(dict.fromkeys(Side, 0)), last=0, num_levels=2)
    routes = replace(
        routes_of(MachineSpec(sip=SipSpec(count=1, columns=2, rows=2))), levels=one_level
    )
    with pytest.raises(SpecError) as failure:
        check_no_deadlock(routes)
    names = {node.name: number for number, node in enumerate(routes.topology.nodes)}
    numbers = {(link.src, link.dst): n for n, link in enumerate(routes.topology.links)}
    cycle = []
    for text in failure.value.found.removeprefix("a cycle of waiting packets: ").split("; "):
        source, _, target, _, level = text.split()
        cycle.append((numbers[names[source], names[target]], int(level)))
    assert len(cycle) >= 2
    known = edges(routes)
    assert all(pair in known for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True))


@pytest.mark.parametrize("num_sips", [4, 5])
def test_a_ring_of_sips_without_a_dateline_is_refused(num_sips: int) -> None:
    spec = MachineSpec(
        sip=SipSpec(count=num_sips, columns=1, rows=1),
        fabric=FabricSpec(kind="ring", links=2),
        cube=cube_of(1, CrossbarSpec(), 1),
    )
    routes = routes_of(spec)
    requests = list(all_requests(routes))
    assert not cycle_of(requests)
    between_sips = {
        number
        for number, link in enumerate(routes.topology.links)
        if link.kind in (LinkKind.FABRIC, LinkKind.SIP_PORT)
    }
    flat = [
        [(link, 0 if link in between_sips else level) for link, level in request]
        for request in requests
    ]
    assert {level for _, level in cycle_of(flat)} == {0}


def test_a_ring_of_routers_without_a_dateline_is_refused() -> None:
    routes = routes_of(single_die(6, RingSpec(routers=6)))
    last = routes.levels.last
    flat = [[(link, min(level, last)) for link, level in route] for route in all_requests(routes)]
    assert cycle_of(flat)


def test_a_route_that_comes_back_to_its_own_channel_is_refused() -> None:
    assert not cycle_of([[(0, 0), (1, 0)], [(1, 0), (2, 0)], [(2, 0), (0, 1)]])
    cycle = cycle_of([[(0, 0), (1, 0)], [(1, 0), (2, 0)], [(2, 0), (0, 0)]])
    assert cycle == [(0, 0), (1, 0), (2, 0)]


def test_a_set_of_routes_without_two_links_cannot_wait() -> None:
    assert not cycle_of([[(reverse_link(0), 0)]])
