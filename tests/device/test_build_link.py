"""A link on an engine keeps the law on paper: every kind of link, alone and in a row."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.build import link_block, link_server
from tilewright.engine import Arbitration, EngineKind, EngineSpec, TaskGraph, build_engine
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.node import LinkKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic, zero_load_ps

HERE = "tests.device.user_memory"


@cache
def machine_of(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


@cache
def all_kinds() -> Machine:
    return machine_of("sip.count=2", "sip.rows=1")


def first_of(kind: LinkKind, machine: Machine) -> int:
    return next(id_ for id_, link in enumerate(machine.links) if link.kind is kind)


def ends_ps(machine: Machine, kind: EngineKind, links: list[int], sizes: list[int]) -> list[int]:
    """When transfers over the links are complete, all of them submitted at 0."""
    spec = machine.spec
    packets = EngineSpec(spec.flit_bytes, spec.packet_bytes // spec.flit_bytes)
    engine = build_engine(kind, packets)
    servers = {link: engine.add_server(link_server(machine, link)) for link in sorted(set(links))}
    route = engine.add_route([servers[link] for link in links])
    for owner, num_bytes in enumerate(sizes):
        graph = TaskGraph()
        graph.transfer(route, num_bytes, effect=owner)
        engine.submit(graph, owner=owner)
    engine.run()
    return [at_ps for at_ps, _ in engine.take_effects()]


@every_engine
@pytest.mark.parametrize("link_kind", list(LinkKind))
def test_a_packet_alone_takes_the_zero_load_time_of_its_link(
    kind: EngineKind, link_kind: LinkKind
) -> None:
    machine = all_kinds()
    link = first_of(link_kind, machine)
    for flits in (1, 7, 16):
        expected_ps = zero_load_ps([machine.links[link]], num_flits=flits, flit_bytes=64)
        assert ends_ps(machine, kind, [link], [64 * flits]) == [expected_ps]


@every_engine
@pytest.mark.parametrize("link_kind", list(LinkKind))
def test_two_packets_pass_a_link_one_after_the_other(kind: EngineKind, link_kind: LinkKind) -> None:
    machine = all_kinds()
    link = first_of(link_kind, machine)
    flit_ps = -(-64 * 10**6 // machine.links[link].bytes_per_us)
    first_ps, second_ps = ends_ps(machine, kind, [link], [1024, 1024])
    assert second_ps - first_ps == 16 * flit_ps


@given(st.data(), st.integers(1, 16))
@settings(max_examples=25)
def test_a_packet_alone_takes_the_zero_load_time_of_any_route(
    data: st.DataObject, flits: int
) -> None:
    machine = all_kinds()
    terminals = [id_ for id_, node in enumerate(machine.nodes) if node.kind.is_terminal]
    sources = [id_ for id_, node in enumerate(machine.nodes) if node.kind.may_request]
    source, target = data.draw(st.sampled_from(sources)), data.draw(st.sampled_from(terminals))
    if source == target:
        return
    spread = data.draw(st.integers(0, 3))
    links = [link for link, _ in machine.route(source, target, Traffic.REQUEST, spread)]
    expected_ps = zero_load_ps(
        [machine.links[link] for link in links], num_flits=flits, flit_bytes=64
    )
    assert ends_ps(machine, EngineKind.REFERENCE, links, [64 * flits]) == [expected_ps]


def test_a_server_has_the_figures_of_its_link() -> None:
    machine = all_kinds()
    for id_, link in enumerate(machine.links):
        server = link_server(machine, id_)
        assert server.name == machine.link_name(id_)
        assert (server.bytes_per_us, server.latency_ps) == (link.bytes_per_us, link.latency_ps)
        assert server.buffer_flits == link.buffer_bytes // 64
        assert (server.credit_ps, server.reassemble) == (link.credit_ps, link.reassemble)
        assert (server.arbitration, server.service) == (Arbitration.ROUND_ROBIN, None)


def test_a_link_behind_a_rate_boundary_takes_packets_in_whole() -> None:
    machine = all_kinds()
    boundary = {"connection", "io_connection", "pcie_ep", "sip_port", "hbm_ctrl", "sram"}
    found = {machine.nodes[link.src].kind.value for link in machine.links if link.reassemble}
    assert found <= boundary
    assert {"connection", "pcie_ep", "hbm_ctrl"} <= found


def test_every_link_belongs_to_the_section_that_replaces_it() -> None:
    """Those of the IO chiplet's crossbar to it, of whatever kind they are."""
    machine = all_kinds()
    spec = machine.spec
    expected = {
        LinkKind.NETWORK: spec.cube.noc,
        LinkKind.ATTACHMENT: spec.cube.noc,
        LinkKind.CONNECTION: spec.cube.noc,
        LinkKind.DIE_TO_DIE: spec.cube.ucie,
        LinkKind.PCIE: spec.host.pcie,
        LinkKind.FABRIC: spec.fabric,
    }
    for link in machine.links:
        names = [machine.nodes[end].name for end in (link.src, link.dst)]
        is_io = any(name.endswith(".io_noc") for name in names)
        assert link_block(machine, link) is (spec.sip.io if is_io else expected[link.kind])


@every_engine
def test_a_user_s_link_takes_the_place_of_ours(kind: EngineKind) -> None:
    values = [f"cube.ucie.impl={HERE}:LongWay", "cube.ucie.parameters={extra_ps: 70000}"]
    values.append("cube.ucie.bytes_per_us=256000")
    machine = machine_of(*values)
    link = first_of(LinkKind.DIE_TO_DIE, machine)
    assert ends_ps(machine, kind, [link], [1024]) == [16 * 250 + 70_000]
    other = first_of(LinkKind.NETWORK, machine)
    plain = zero_load_ps([machine.links[other]], num_flits=16, flit_bytes=64)
    assert ends_ps(machine, kind, [other], [1024]) == [plain]
