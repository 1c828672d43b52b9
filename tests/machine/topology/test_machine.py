from collections import Counter

import pytest
from hypothesis import given, settings

from tests.machine.shapes import cube_of, machines, open_mesh, single_die
from tilewright.errors import SpecError
from tilewright.machine.node import LinkKind, NodeKind, reverse_link
from tilewright.machine.spec import (
    CommandProcessorSpec,
    CrossbarSpec,
    FabricSpec,
    MachineSpec,
    MeshSpec,
    RingSpec,
    SipSpec,
)
from tilewright.machine.topology.machine import Topology, build_topology


def link_between(topology: Topology, one: str, other: str) -> int:
    numbers = {node.name: number for number, node in enumerate(topology.nodes)}
    ends = numbers[one], numbers[other]
    [found] = [n for n, link in enumerate(topology.links) if (link.src, link.dst) == ends]
    return found


@pytest.fixture(scope="module")
def ahbm() -> Topology:
    return build_topology(MachineSpec())


def test_the_default_machine_has_the_counts_of_its_reference(ahbm: Topology) -> None:
    kinds = Counter(node.kind for node in ahbm.nodes)
    assert kinds == {
        NodeKind.HOST: 1,
        NodeKind.SWITCH: 1,
        NodeKind.PCIE_EP: 2,
        NodeKind.IO_CPU: 2,
        NodeKind.IO_NOC: 2,
        NodeKind.SIP_PORT: 2 * 4,
        NodeKind.IO_CONNECTION: 2 * 4 * 4,
        NodeKind.ROUTER: 32 * 32,
        NodeKind.CONNECTION: 32 * 16,
        NodeKind.M_CPU: 32,
        NodeKind.SRAM: 32,
        NodeKind.HBM_CTRL: 32 * 8,
        NodeKind.PE_DMA: 32 * 8,
        NodeKind.PE_CPU: 32 * 8,
    }


def test_the_default_machine_has_the_links_of_its_shape(ahbm: Topology) -> None:
    kinds = Counter(link.kind for link in ahbm.links)
    mesh_edges = 2 * (2 * 6 * 5) - 2 * 12  # the hole takes twelve wires away
    assert kinds[LinkKind.NETWORK] == 32 * mesh_edges
    assert kinds[LinkKind.DIE_TO_DIE] == 2 * 2 * 4 * (2 * 4 * 3 + 4)
    assert kinds[LinkKind.FABRIC] == 2 * 2 * 4
    assert kinds[LinkKind.PCIE] == 2 * 2


@pytest.mark.parametrize(
    ("one", "other", "bytes_per_us", "wire_ps", "node_ps", "buffer_bytes", "reassemble"),
    [
        ("sip0.cube0.r0c0", "sip0.cube0.r0c1", 256_000, 28, 1_000, 4_096, False),
        ("sip0.cube0.pe0.dma", "sip0.cube0.r0c1", 256_000, 3, 1_000, 4_096, False),
        ("sip0.cube0.r0c1", "sip0.cube0.hbm_ctrl.pe0", 256_000, 3, 0, 8_192, False),
        ("sip0.cube0.hbm_ctrl.pe0", "sip0.cube0.r0c1", 256_000, 3, 1_000, 4_096, True),
        ("sip0.cube0.r3c0", "sip0.cube0.sram", 128_000, 3, 2_000, 4_096, False),
        ("sip0.cube0.sram", "sip0.cube0.r3c0", 128_000, 3, 1_000, 4_096, True),
        ("sip0.cube0.r1c5", "sip0.cube0.ucie-E.conn1", 256_000, 3, 8_000, 8_192, False),
        ("sip0.cube0.ucie-E.conn1", "sip0.cube1.ucie-W.conn1", 128_000, 10, 8_000, 8_192, False),
        ("sip0.cube1.ucie-W.conn1", "sip0.cube1.r1c0", 256_000, 3, 1_000, 4_096, True),
        ("sip0.io0.ucie-P2.conn3", "sip0.cube2.ucie-N.conn3", 128_000, 10, 8_000, 8_192, False),
        ("sip0.io0.ucie-P2.conn3", "sip0.io0.io_noc", 128_000, 3, 1_000, 8_192, True),
        ("sip1.io0.io_noc", "sip1.io0.io_cpu", 128_000, 3, 0, 4_096, False),
        ("host", "sip1.io0.pcie_ep", 57_614, 1_000, 100_000, 65_536, False),
        ("sip1.io0.pcie_ep", "sip1.io0.io_noc", 57_614, 3, 1_000, 8_192, True),
        ("sip0.io0.io_noc", "sip0.io0.link2", 128_000, 3, 0, 65_536, False),
        ("sip0.io0.link2", "fabric.switch0", 128_000, 200_000, 100_000, 65_536, False),
        ("fabric.switch0", "sip1.io0.link2", 128_000, 200_000, 0, 65_536, False),
        ("sip1.io0.link2", "sip1.io0.io_noc", 128_000, 3, 1_000, 8_192, True),
    ],
)
def test_a_link_of_the_default_machine_has_the_figures_of_its_kind(
    ahbm: Topology,
    one: str,
    other: str,
    bytes_per_us: int,
    wire_ps: int,
    node_ps: int,
    buffer_bytes: int,
    reassemble: bool,
) -> None:
    link = ahbm.links[link_between(ahbm, one, other)]
    assert (link.bytes_per_us, link.wire_ps, link.node_ps) == (bytes_per_us, wire_ps, node_ps)
    assert (link.buffer_bytes, link.reassemble) == (buffer_bytes, reassemble)
    assert link.credit_ps == wire_ps
    assert link.latency_ps == wire_ps + node_ps


@settings(max_examples=40)
@given(spec=machines(most_sips=5, most_cubes=3, most_pes=4))
def test_links_come_in_pairs_that_lead_back(spec: MachineSpec) -> None:
    topology = build_topology(spec)
    for number, link in enumerate(topology.links):
        back = topology.links[reverse_link(number)]
        assert (back.src, back.dst, back.kind) == (link.dst, link.src, link.kind)
        assert back.bytes_per_us == link.bytes_per_us
        assert link.node_ps == topology.nodes[link.dst].latency_ps
        assert link.buffer_bytes == topology.nodes[link.dst].buffer_bytes


@settings(max_examples=40)
@given(spec=machines(most_sips=5, most_cubes=3, most_pes=4))
def test_wires_without_delay_take_no_time_and_their_credits_none(spec: MachineSpec) -> None:
    fabric = spec.fabric.model_copy(update={"latency_ps": 0})
    spec = spec.model_copy(update={"ps_per_mm": 0, "fabric": fabric})
    for link in build_topology(spec).links:
        assert (link.wire_ps, link.credit_ps, link.latency_ps) == (0, 0, link.node_ps)


@settings(max_examples=40)
@given(spec=machines(most_sips=5, most_cubes=3, most_pes=4))
def test_cubes_are_alike_and_every_node_knows_its_cube(spec: MachineSpec) -> None:
    topology = build_topology(spec)
    size = len(topology.die.nodes)
    for cube, base in enumerate(topology.node_base):
        assert {topology.cube_of(node) for node in range(base, base + size)} == {cube}
    of_no_cube = [node for node in range(len(topology.nodes)) if topology.cube_of(node) is None]
    assert len(of_no_cube) == len(topology.nodes) - size * len(topology.node_base)


@pytest.mark.parametrize("side", [4, 8])
def test_an_open_mesh_has_the_directed_links_of_no10(side: int) -> None:
    links = build_topology(open_mesh(side)).links
    assert sum(link.kind is LinkKind.NETWORK for link in links) == 4 * side * (side - 1)


def test_a_single_die_has_the_host_on_its_own_network() -> None:
    topology = build_topology(single_die(4, CrossbarSpec()))
    names = {node.name for node in topology.nodes}
    assert {"host", "sip0.pcie_ep", "sip0.io_cpu", "sip0.cube0.xbar"} <= names
    assert not any(".io0." in name or "ucie" in name for name in names)
    endpoint = topology.links[link_between(topology, "sip0.pcie_ep", "sip0.cube0.xbar")]
    assert endpoint.reassemble
    assert endpoint.wire_ps == 60


def test_a_single_die_has_the_io_processor_that_its_file_describes() -> None:
    spec = single_die(4, CrossbarSpec())
    io_cpu = CommandProcessorSpec(buffer_bytes=16_384)
    spec = spec.model_copy(update={"sip": spec.sip.model_copy(update={"io_cpu": io_cpu})})
    topology = build_topology(spec)
    link = topology.links[link_between(topology, "sip0.cube0.xbar", "sip0.io_cpu")]
    assert link.buffer_bytes == 16_384


def test_a_ring_of_routers_joins_the_last_to_the_first() -> None:
    topology = build_topology(single_die(2, RingSpec(routers=4)))
    link_between(topology, "sip0.cube0.ring3", "sip0.cube0.ring0")
    assert sum(link.kind is LinkKind.NETWORK for link in topology.links) == 8


def fabric_neighbours(spec: MachineSpec, sip: int) -> Counter[int]:
    topology = build_topology(spec)
    found: Counter[int] = Counter()
    for link in topology.links:
        if link.kind is LinkKind.FABRIC:
            one, other = (
                int(topology.nodes[node].name.split(".")[0][3:]) for node in (link.src, link.dst)
            )
            if one == sip:
                found[other] += 1
    return found


def test_links_of_a_sip_are_dealt_over_its_directions() -> None:
    small = cube_of(1, CrossbarSpec(), 1)

    def neighbours(count: int, fabric: FabricSpec, sip: int) -> Counter[int]:
        sip_spec = SipSpec(count=count, columns=1, rows=1)
        return fabric_neighbours(MachineSpec(sip=sip_spec, cube=small, fabric=fabric), sip)

    assert neighbours(5, FabricSpec(kind="ring"), 0) == {1: 2, 4: 2}
    assert neighbours(6, FabricSpec(kind="torus", columns=3), 0) == {1: 1, 2: 1, 3: 2}
    assert neighbours(6, FabricSpec(kind="mesh", columns=3), 0) == {1: 1, 3: 1}
    assert neighbours(6, FabricSpec(kind="mesh", columns=3), 4) == {1: 1, 3: 1, 5: 1}
    assert neighbours(3, FabricSpec(kind="torus", links=7), 1) == {0: 3, 2: 3}


def test_fewer_links_than_directions_are_refused() -> None:
    spec = MachineSpec(sip=SipSpec(count=4), fabric=FabricSpec(kind="torus", columns=2, links=3))
    with pytest.raises(SpecError, match=r"fabric\.links: found 3 links a SIP, expected at least 4"):
        build_topology(spec)


def test_a_single_sip_has_no_fabric() -> None:
    topology = build_topology(MachineSpec(sip=SipSpec(count=1)))
    kinds = {node.kind for node in topology.nodes}
    assert not kinds & {NodeKind.SWITCH, NodeKind.SIP_PORT}


def test_a_mesh_of_one_router_works() -> None:
    noc = MeshSpec(rows=1, columns=1, hole_rows=0, hole_columns=0)
    topology = build_topology(MachineSpec(cube=cube_of(1, noc, 4)))
    assert sum(node.kind is NodeKind.ROUTER for node in topology.nodes) == 32
