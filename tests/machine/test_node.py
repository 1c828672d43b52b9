import pytest

from tests.machine.shapes import cube_of, single_die
from tilewright.errors import SpecError
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.machine.node import NodeKind, NodeName, format_name, parse_name, place_name
from tilewright.machine.spec import CrossbarSpec, FabricSpec, MachineSpec, RingSpec, SipSpec
from tilewright.machine.topology.machine import build_topology

NAMES = {
    "host": NodeName(NodeKind.HOST),
    "fabric.switch0": NodeName(NodeKind.SWITCH, index=0),
    "sip0.io0.pcie_ep": NodeName(NodeKind.PCIE_EP, sip=0, io=0),
    "sip0.pcie_ep": NodeName(NodeKind.PCIE_EP, sip=0),
    "sip1.io0.io_cpu": NodeName(NodeKind.IO_CPU, sip=1, io=0),
    "sip0.io_cpu": NodeName(NodeKind.IO_CPU, sip=0),
    "sip1.io0.io_noc": NodeName(NodeKind.IO_NOC, sip=1, io=0),
    "sip1.io0.link3": NodeName(NodeKind.SIP_PORT, sip=1, io=0, index=3),
    "sip0.io0.ucie-P2.conn1": NodeName(NodeKind.IO_CONNECTION, sip=0, io=0, port=2, index=1),
    "sip0.cube3.r1c4": NodeName(NodeKind.ROUTER, sip=0, cube=3, row=1, column=4),
    "sip0.cube3.ring5": NodeName(NodeKind.RING_ROUTER, sip=0, cube=3, index=5),
    "sip0.cube3.xbar": NodeName(NodeKind.CROSSBAR, sip=0, cube=3),
    "sip0.cube3.ucie-N.conn0": NodeName(NodeKind.CONNECTION, sip=0, cube=3, side="N", index=0),
    "sip0.cube3.m_cpu": NodeName(NodeKind.M_CPU, sip=0, cube=3),
    "sip0.cube3.sram": NodeName(NodeKind.SRAM, sip=0, cube=3),
    "sip0.cube3.hbm_ctrl.pe5": NodeName(NodeKind.HBM_CTRL, sip=0, cube=3, pe=5),
    "sip0.cube3.pe5.dma": NodeName(NodeKind.PE_DMA, sip=0, cube=3, pe=5),
    "sip0.cube3.pe5.cpu": NodeName(NodeKind.PE_CPU, sip=0, cube=3, pe=5),
}


@pytest.mark.parametrize("text", NAMES)
def test_every_pattern_is_written_and_read(text: str) -> None:
    assert format_name(NAMES[text]) == text
    assert parse_name(text) == NAMES[text]


def test_there_is_a_pattern_for_every_kind() -> None:
    assert {name.kind for name in NAMES.values()} == set(NodeKind)


def test_a_name_knows_its_place() -> None:
    assert parse_name("host").where is None
    assert parse_name("sip1.io0.io_noc").where == SipCoord(1)
    assert parse_name("sip1.cube3.sram").where == CubeCoord(1, 3)
    assert parse_name("sip1.cube3.hbm_ctrl.pe5").where == PeCoord(1, 3, 5)


@pytest.mark.parametrize(
    "text",
    ["", "sip0", "sip00.cube0.sram", "sip0.cube0.pe1", "sip0.cube0.ucie-X.conn0", "host.x", "Host"],
)
def test_a_text_of_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="correct the path"):
        parse_name(text)


def test_parts_that_no_pattern_has_are_refused() -> None:
    with pytest.raises(SpecError, match=r"found sram with sip, expected sip\{sip\}\.cube"):
        format_name(NodeName(NodeKind.SRAM, sip=0))


@pytest.mark.parametrize(
    "spec",
    [
        MachineSpec(),
        MachineSpec(sip=SipSpec(count=4), fabric=FabricSpec(kind="torus", columns=2)),
        MachineSpec(sip=SipSpec(columns=2, rows=1), cube=cube_of(4, RingSpec(), 2)),
        single_die(4, CrossbarSpec()),
    ],
)
def test_all_nodes_of_a_machine_have_different_names_that_say_what_they_are(
    spec: MachineSpec,
) -> None:
    nodes = build_topology(spec).nodes
    assert len({node.name for node in nodes}) == len(nodes)
    for node in nodes:
        name = parse_name(node.name)
        assert (name.kind, name.where) == (node.kind, node.where)


def test_the_nodes_of_a_place_have_its_name_in_front() -> None:
    for node in build_topology(MachineSpec(sip=SipSpec(columns=2, rows=1))).nodes:
        if node.where is not None and node.kind is not NodeKind.HBM_CTRL:
            assert node.name.startswith(f"{place_name(node.where)}.")
