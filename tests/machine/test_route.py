from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.shapes import machines, open_mesh, terminals
from tilewright.engine import EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.errors import SpecError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.node import Link, LinkKind, NodeKind, reverse_link
from tilewright.machine.route import Route, Traffic, zero_load_ps
from tilewright.machine.spec import FabricSpec, MachineSpec, SipSpec


def nodes_on(machine: Machine, route: Route) -> list[str]:
    names = [machine.nodes[machine.links[route[0][0]].src].name]
    return names + [machine.nodes[machine.links[link].dst].name for link, _ in route]


def levels_on(machine: Machine, route: Route) -> list[int]:
    return [channel % machine.routes.levels.num_levels for _, channel in route]


def crossings(machine: Machine, route: Route, kind: LinkKind) -> int:
    return sum(machine.links[link].kind is kind for link, _ in route)


@pytest.fixture(scope="module")
def ahbm() -> Machine:
    return build_machine(MachineSpec())


def find(machine: Machine, source: str, target: str, traffic: Traffic, spread: int) -> Route:
    return machine.route(machine.node_id(source), machine.node_id(target), traffic, spread)


def test_a_pe_reaches_its_own_slice_over_its_router(ahbm: Machine) -> None:
    route = find(ahbm, "sip0.cube0.pe5.dma", "sip0.cube0.hbm_ctrl.pe5", Traffic.REQUEST, 5)
    assert nodes_on(ahbm, route) == [
        "sip0.cube0.pe5.dma",
        "sip0.cube0.r5c1",
        "sip0.cube0.hbm_ctrl.pe5",
    ]


def test_inside_a_die_a_packet_goes_along_its_row_then_its_column(ahbm: Machine) -> None:
    route = find(ahbm, "sip0.cube0.pe0.dma", "sip0.cube0.hbm_ctrl.pe6", Traffic.REQUEST, 0)
    assert [name.rpartition(".")[2] for name in nodes_on(ahbm, route)[1:-1]] == [
        *("r0c1", "r0c2", "r0c3", "r0c4"),
        *("r1c4", "r2c4", "r3c4", "r4c4"),
    ]


def test_the_m_cpu_is_reached_from_beyond_the_hole(ahbm: Machine) -> None:
    route = find(ahbm, "sip0.cube0.pe5.cpu", "sip0.cube0.m_cpu", Traffic.REQUEST, 5)
    assert [name.rpartition(".")[2] for name in nodes_on(ahbm, route)[1:-1]] == [
        *("r5c1", "r4c1", "r3c1", "r2c1", "r1c1", "r0c1"),
        "r0c2",
    ]


def test_a_packet_goes_along_the_row_of_cubes_then_the_column_and_climbs_levels(
    ahbm: Machine,
) -> None:
    route = find(ahbm, "sip0.cube0.pe1.dma", "sip0.cube6.hbm_ctrl.pe1", Traffic.REQUEST, 1)
    names = nodes_on(ahbm, route)
    cubes = [name.split(".")[1] for name in names]
    assert list(dict.fromkeys(cubes)) == ["cube0", "cube1", "cube2", "cube6"]
    level_in = {cube: set[int]() for cube in cubes}
    for cube, level in zip(cubes, levels_on(ahbm, route), strict=False):
        level_in[cube].add(level)
    assert level_in == {"cube0": {0}, "cube1": {0}, "cube2": {1}, "cube6": {2}}
    assert all(".conn" not in name or name.endswith(".conn1") for name in names)


def test_a_packet_to_another_sip_leaves_and_enters_by_north_ports(ahbm: Machine) -> None:
    route = find(ahbm, "sip0.cube5.pe2.dma", "sip1.cube8.hbm_ctrl.pe3", Traffic.REQUEST, 6)
    parts = [".".join(name.split(".")[:2]) for name in nodes_on(ahbm, route)]
    assert list(dict.fromkeys(parts)) == [
        *("sip0.cube5", "sip0.cube1", "sip0.io0"),
        "fabric.switch0",
        *("sip1.io0", "sip1.cube0", "sip1.cube4", "sip1.cube8"),
    ]
    names = nodes_on(ahbm, route)
    assert {"sip0.io0.link2", "sip1.io0.link2", "sip0.io0.ucie-P1.conn2"} <= set(names)


def test_the_host_reaches_each_sip_over_its_own_link(ahbm: Machine) -> None:
    route = find(ahbm, "host", "sip1.cube2.hbm_ctrl.pe0", Traffic.REQUEST, 0)
    assert nodes_on(ahbm, route)[:6] == [
        "host",
        "sip1.io0.pcie_ep",
        "sip1.io0.io_noc",
        "sip1.io0.ucie-P2.conn0",
        "sip1.cube2.ucie-N.conn0",
        "sip1.cube2.r0c0",
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("host", "sip0.io0.io_cpu"),
        ("sip0.io0.io_cpu", "host"),
        ("sip0.io0.io_cpu", "sip0.cube9.m_cpu"),
        ("sip0.cube9.m_cpu", "sip0.io0.io_cpu"),
        ("sip0.cube9.m_cpu", "sip0.cube9.pe7.cpu"),
        ("sip0.cube9.pe7.cpu", "sip0.cube9.m_cpu"),
        ("sip0.cube9.pe7.cpu", "sip1.io0.io_cpu"),
        ("sip0.cube9.pe7.dma", "sip0.cube4.sram"),
        ("sip0.cube9.pe7.dma", "sip1.cube4.sram"),
        ("sip0.cube9.pe7.dma", "host"),
        ("sip1.io0.io_cpu", "sip0.io0.io_cpu"),
        ("sip1.cube0.pe0.dma", "sip0.cube15.pe6.dma"),
    ],
)
def test_terminals_of_every_kind_reach_each_other(ahbm: Machine, source: str, target: str) -> None:
    for traffic in (Traffic.REQUEST, Traffic.COMMUNICATION):
        names = nodes_on(ahbm, find(ahbm, source, target, traffic, 3))
        assert (names[0], names[-1]) == (source, target)
    names = nodes_on(ahbm, find(ahbm, target, source, Traffic.RESPONSE, 3))
    assert (names[0], names[-1]) == (target, source)


@settings(max_examples=100)
@given(spec=machines(most_sips=6, most_cubes=3, most_pes=4), data=st.data())
def test_a_route_is_connected_repeats_no_channel_and_reverses_exactly(
    spec: MachineSpec, data: st.DataObject
) -> None:
    machine = build_machine(spec)
    requesters, targets = terminals(machine)
    source = data.draw(st.sampled_from(requesters))
    target = data.draw(st.sampled_from([node for node in targets if node != source]))
    spread = data.draw(st.integers(0, 30))
    num_levels = machine.routes.levels.num_levels
    request = machine.route(source, target, Traffic.REQUEST, spread)
    at = source
    for link, channel in request:
        assert machine.links[link].src == at
        assert 0 <= channel < num_levels
        at = machine.links[link].dst
    assert at == target
    assert len(set(request)) == len(request)
    between = {machine.links[link].dst for link, _ in request[:-1]}
    assert not any(machine.nodes[node].kind.is_terminal for node in between)
    response = machine.route(target, source, Traffic.RESPONSE, spread)
    assert [link for link, _ in response] == [reverse_link(link) for link, _ in reversed(request)]
    mirrored = [num_levels - 1 - channel for _, channel in reversed(request)]
    assert [channel for _, channel in response] == [num_levels + level for level in mirrored]
    communication = machine.route(source, target, Traffic.COMMUNICATION, spread)
    assert communication == tuple((link, channel + 2 * num_levels) for link, channel in request)


@settings(max_examples=60)
@given(spec=machines(most_sips=1, most_cubes=4, most_pes=2), data=st.data())
def test_the_crossings_between_two_cubes_are_their_distance(
    spec: MachineSpec, data: st.DataObject
) -> None:
    machine = build_machine(spec)
    cubes = st.sampled_from(list(machine.grid.cubes()))
    one, other = data.draw(cubes), data.draw(cubes)
    spread = data.draw(st.integers(0, 9))
    route = find(
        machine,
        f"sip0.cube{one.cube}.pe0.dma",
        f"sip0.cube{other.cube}.hbm_ctrl.pe0",
        Traffic.REQUEST,
        spread,
    )
    (column, row), (goal_column, goal_row) = machine.grid.cell(one), machine.grid.cell(other)
    distance = abs(column - goal_column) + abs(row - goal_row)
    assert crossings(machine, route, LinkKind.DIE_TO_DIE) == distance


@pytest.mark.parametrize(
    ("fabric", "source", "target", "num_hops"),
    [
        (FabricSpec(kind="ring"), 0, 3, 3),
        (FabricSpec(kind="ring"), 5, 0, 1),
        (FabricSpec(kind="torus", columns=3), 0, 5, 2),
        (FabricSpec(kind="mesh", columns=3), 0, 5, 3),
        (FabricSpec(kind="switch"), 0, 5, 2),
    ],
)
def test_between_sips_a_packet_takes_the_shortest_way_of_the_shape(
    fabric: FabricSpec, source: int, target: int, num_hops: int
) -> None:
    machine = build_machine(MachineSpec(sip=SipSpec(count=6, columns=1, rows=1), fabric=fabric))
    for spread in range(4):
        ends = f"sip{source}.cube0.pe0.dma", f"sip{target}.cube0.pe0.dma"
        route = find(machine, *ends, Traffic.COMMUNICATION, spread)
        assert crossings(machine, route, LinkKind.FABRIC) == num_hops


def test_spreads_use_all_parallel_links_between_sips() -> None:
    """Opposite SIPs of a ring are joined by two equal ways of two links each."""
    machine = build_machine(
        MachineSpec(sip=SipSpec(count=4, columns=1, rows=1), fabric=FabricSpec(kind="ring"))
    )
    first = set()
    for spread in range(8):
        route = find(machine, "sip0.cube0.pe0.dma", "sip2.cube0.pe0.dma", Traffic.REQUEST, spread)
        first.add(next(n for n in nodes_on(machine, route) if ".link" in n))
    assert first == {f"sip0.io0.link{port}" for port in range(4)}


def test_eight_pes_spread_evenly_over_the_connections_of_a_port(ahbm: Machine) -> None:
    used = []
    for pe in range(8):
        ends = f"sip0.cube0.pe{pe}.dma", f"sip0.cube1.hbm_ctrl.pe{pe}"
        names = nodes_on(ahbm, find(ahbm, *ends, Traffic.REQUEST, pe))
        used += [name for name in names if "cube0.ucie-E" in name]
    assert sorted(used) == sorted(f"sip0.cube0.ucie-E.conn{n}" for n in (0, 1, 2, 3) * 2)


@pytest.mark.parametrize("side", [4, 8])
def test_mean_hops_of_an_open_mesh_are_those_of_no3_and_no4(side: int) -> None:
    machine = build_machine(open_mesh(side))
    dmas = [n for n, node in enumerate(machine.nodes) if node.kind is NodeKind.PE_DMA]
    hops = [
        crossings(machine, machine.route(one, other, Traffic.REQUEST, 0), LinkKind.NETWORK)
        for one in dmas
        for other in dmas
        if one != other
    ]
    assert Fraction(sum(hops), len(dmas) ** 2) == Fraction(2 * (side**2 - 1), 3 * side)
    assert Fraction(sum(hops), len(hops)) == Fraction(2 * side, 3)


def test_a_route_is_kept(ahbm: Machine) -> None:
    ends = "sip0.cube0.pe0.dma", "sip0.cube3.sram"
    first = find(ahbm, *ends, Traffic.REQUEST, 0)
    assert find(ahbm, *ends, Traffic.REQUEST, 0) is first


@pytest.mark.parametrize(
    ("source", "target", "spread", "message"),
    [
        ("sip0.cube0.sram", "sip0.cube0.pe0.dma", 0, "a request by sram"),
        ("sip0.cube0.pe0.dma", "sip0.cube0.r0c0", 0, "router as target"),
        ("sip0.cube0.pe0.dma", "sip0.cube0.pe0.dma", 0, "found one node"),
        ("sip0.cube0.pe0.dma", "sip0.cube0.sram", -1, "spread -1"),
    ],
)
def test_a_route_that_nothing_may_take_is_refused(
    ahbm: Machine, source: str, target: str, spread: int, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        find(ahbm, source, target, Traffic.REQUEST, spread)


def test_a_number_of_no_node_is_refused(ahbm: Machine) -> None:
    with pytest.raises(SpecError, match=r"use machine\.node_id"):
        ahbm.route(0, len(ahbm.nodes), Traffic.REQUEST, 0)


def link(bytes_per_us: int, wire_ps: int, *, reassemble: bool) -> Link:
    return Link(0, 1, LinkKind.NETWORK, bytes_per_us, wire_ps, 0, 4_096, wire_ps, reassemble)


links = st.builds(
    link, st.integers(20_000, 500_000), st.integers(1, 5_000), reassemble=st.booleans()
)


@settings(max_examples=60)
@given(chain=st.lists(links, min_size=1, max_size=6), num_flits=st.integers(1, 16))
def test_a_route_takes_what_the_engine_takes_for_one_packet(
    chain: list[Link], num_flits: int
) -> None:
    engine = build_engine(EngineKind.REFERENCE, EngineSpec(flit_bytes=64, packet_flits=16))
    names = [f"link{number}" for number in range(len(chain))]
    for name, each in zip(names, chain, strict=True):
        engine.add_server(
            ServerSpec(
                name,
                bytes_per_us=each.bytes_per_us,
                latency_ps=each.latency_ps,
                reassemble=each.reassemble,
            )
        )
    graph = TaskGraph()
    graph.transfer(engine.add_route(names), num_bytes=64 * num_flits, effect=0)
    engine.submit(graph)
    engine.run()
    [(end_ps, _)] = engine.take_effects()
    assert zero_load_ps(chain, num_flits=num_flits, flit_bytes=64) == end_ps


@pytest.mark.parametrize("num_flits", [1, 16])
def test_from_corner_to_corner_a_packet_takes_the_sum_of_hops_and_its_flits(num_flits: int) -> None:
    machine = build_machine(open_mesh(4))
    one, other = (machine.node_id(f"sip0.cube0.{name}.dma") for name in ("pe2", "pe15"))
    route = machine.route(one, other, Traffic.REQUEST, 0)
    assert len(route) == 2 + 6
    links_on = [machine.links[number] for number, _ in route]
    hops_ps = sum(250 + link.latency_ps for link in links_on)
    found = zero_load_ps(links_on, num_flits=num_flits, flit_bytes=64)
    assert found == hops_ps + (num_flits - 1) * 250
