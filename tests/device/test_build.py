"""A machine on an engine: its memories, its trips, and blocks of the user's."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access, Channel
from tilewright.engine import EngineKind, TaskGraph
from tilewright.errors import SpecError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.programs.probe.run import run_probe

HERE = "tests.device.user_memory"
READ, WRITE = Access.READ, Access.WRITE
pes = st.builds(PeCoord, st.just(0), st.integers(0, 3), st.integers(0, 3))


@cache
def machine_of(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


def end_ps(device: Device, trip: int, num_bytes: int) -> int:
    graph = TaskGraph()
    graph.exchange(trip, num_bytes, effect=0)
    device.engine.submit(graph)
    device.engine.run()
    ((at_ps, _),) = device.engine.take_effects()
    return at_ps


def test_every_link_is_one_server_and_every_memory_is_there() -> None:
    machine = machine_of()
    device = build_device(machine)
    assert sorted(device.links) == list(range(len(machine.links)))
    assert len(set(device.links.values()) | set(device.memories.values())) == len(
        machine.links
    ) + len(device.memories)
    kinds = [machine.nodes[node].kind for node in device.memories]
    assert (kinds.count(NodeKind.HBM_CTRL), kinds.count(NodeKind.SRAM)) == (16, 4)


@given(pes, pes, st.sampled_from(Access), st.integers(1, 20_000))
@settings(max_examples=20)
def test_links_that_nobody_uses_decide_nothing(
    source: PeCoord, target: PeCoord, access: Access, num_bytes: int
) -> None:
    machine = machine_of()
    whole = build_device(machine)
    trip = whole.pe_access(source, target, access)
    ends = whole.machine.node_of(NodeKind.PE_DMA, source), whole.memory_node(target)
    out = machine.route(ends[0], ends[1], Traffic.REQUEST, source.pe)
    back = machine.route(ends[1], ends[0], Traffic.RESPONSE, source.pe)
    part = build_device(machine, links={link for link, _ in (*out, *back)})
    assert len(part.links) == len(out) + len(back)
    assert list(part.memories) == [ends[1]]
    times = (
        end_ps(whole, trip, num_bytes),
        end_ps(part, part.pe_access(source, target, access), num_bytes),
    )
    assert times[0] == times[1]


def test_a_trip_is_made_once() -> None:
    device = build_device(machine_of())
    near, far = PeCoord(0, 0, 0), PeCoord(0, 3, 1)
    trips = [device.pe_access(near, far, READ), device.pe_access(near, far, WRITE)]
    assert trips[0] != trips[1]
    assert [device.pe_access(near, far, READ), device.pe_access(near, far, WRITE)] == trips


def test_a_trip_to_what_is_no_memory_is_refused() -> None:
    device = build_device(machine_of())
    pe = PeCoord(0, 0, 0)
    ends = device.machine.node_of(NodeKind.PE_DMA, pe), device.machine.node_of(NodeKind.M_CPU, pe)
    with pytest.raises(SpecError, match=r"sip0\.cube0\.m_cpu as its target, expected a memory"):
        device.round_trip(*ends, Channel(pe, READ), spread=0)


@every_engine
@pytest.mark.parametrize("access", list(Access))
def test_a_user_s_memory_takes_the_place_of_ours(kind: EngineKind, access: Access) -> None:
    """Of a read it sees the request, one flit; of a write the data."""
    values = f"cube.hbm.impl={HERE}:OneByteAPicosecond", "cube.hbm.parameters={access_ps: 777}"
    machine = machine_of(*values)
    device = build_device(machine, kind)
    pe = PeCoord(0, 0, 0)
    links = machine.links
    ends = device.machine.node_of(NodeKind.PE_DMA, pe), device.memory_node(pe)
    flits = (16, 1) if access is WRITE else (1, 16)
    ways = (
        machine.route(ends[0], ends[1], Traffic.REQUEST, 0),
        machine.route(ends[1], ends[0], Traffic.RESPONSE, 0),
    )
    ways_ps = sum(
        zero_load_ps([links[link] for link, _ in way], num_flits=count, flit_bytes=64)
        for way, count in zip(ways, flits, strict=True)
    )
    served_ps = 64 * flits[0] + 777
    assert end_ps(device, device.pe_access(pe, pe, access), 1024) == ways_ps + served_ps


@every_engine
def test_a_user_s_memory_can_be_probed(kind: EngineKind) -> None:
    machine = machine_of(f"cube.hbm.impl={HERE}:OneByteAPicosecond")
    record = run_probe(machine, names=["pe_local", "hot_2"], sizes=[256, 4096], choice=kind)
    assert record.ok, record.failures
    assert record.cases[0].breakdown_ps.memory == 5_000 + 64
    assert all(row.breakdown_ps.refresh == 0 for row in record.cases)


LINK_SECTIONS = {
    "cube.noc": "pe_local",
    "cube.ucie": "pe_next_cube",
    "host.pcie": "host_read_near",
    "sip.io": "host_write_near",
    "fabric": "pe_other_sip",
}


def slow_links(section: str, extra_ps: int) -> Machine:
    """Links of the user's that take 2 ns a flit, slower than any of ours, and ``extra_ps``."""
    parameters = f"{section}.parameters={{extra_ps: {extra_ps}, flit_ps: 2000}}"
    return machine_of("sip.count=2", "sip.rows=1", f"{section}.impl={HERE}:LongWay", parameters)


@every_engine
@pytest.mark.parametrize("section", LINK_SECTIONS)
@pytest.mark.parametrize("extra_ps", [0, 20_000])
def test_links_of_the_user_s_can_be_probed_wherever_they_are(
    kind: EngineKind, section: str, extra_ps: int
) -> None:
    """Faster than the file's latency or slower, the bound holds and the parts add up."""
    names = [LINK_SECTIONS[section], "hot_2"]
    machine = slow_links(section, extra_ps)
    record = run_probe(machine, names=names, sizes=[256, 5_000, 100_000], choice=kind)
    assert record.ok, record.failures
    for row in record.cases:
        assert sum(part_ps for _, part_ps in row.breakdown_ps) == row.latency_ps


@pytest.mark.parametrize("section", LINK_SECTIONS)
def test_what_a_user_s_link_adds_behind_it_is_told_as_wire(section: str) -> None:
    rows = [
        run_probe(slow_links(section, extra_ps), names=[LINK_SECTIONS[section]], sizes=[256])
        for extra_ps in (0, 20_000)
    ]
    fast, slow = (record.cases[0].breakdown_ps for record in rows)
    added_ps = rows[1].cases[0].latency_ps - rows[0].cases[0].latency_ps
    assert added_ps >= 2 * 20_000
    assert (slow.wire - fast.wire, slow.overhead) == (added_ps, fast.overhead)
