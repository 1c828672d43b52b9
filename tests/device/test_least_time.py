"""Least times are those of the simulated machine where nothing waits, and never more."""

from itertools import pairwise

import pytest

from tests.device.test_command_delivery import times_of
from tilewright.device.build import build_device
from tilewright.device.dma import Access
from tilewright.device.least_time import (
    access_time,
    between_ps,
    command_times,
    fabric_ps,
    least_link,
    way_ps,
)
from tilewright.engine import TaskGraph
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic
from tilewright.units import flit_ps

PE = PeCoord(0, 0, 0)
LONG_WAY = "impl=tests.device.user_memory:LongWay"


def machine_of(*overrides: str, preset: str = "ahbm-small") -> Machine:
    return build_machine(parse_machine(preset, overrides))


def pes_of(machine: Machine) -> list[PeCoord]:
    return [machine.grid.coord(flat) for flat in range(machine.grid.num_pes)]


@pytest.mark.parametrize("preset", ["ahbm", "ahbm-small", "crossbar-chip"])
def test_commands_arrive_when_processors_and_links_have_handed_them_on(preset: str) -> None:
    machine = machine_of(preset=preset)
    pes = pes_of(machine)
    times = command_times(machine, pes)
    arrived, known_ps = times_of(build_device(machine), pes, num_entries=0)
    assert arrived == {pe: time.there_ps for pe, time in times.items()}
    assert known_ps >= max(time.there_ps + time.back_ps for time in times.values())


@pytest.mark.parametrize("pe", [PE, PeCoord(0, 3, 2)])
def test_a_lone_command_is_answered_to_the_picosecond(pe: PeCoord) -> None:
    machine = machine_of("host.command_bytes=200")
    time = command_times(machine, (pe,))[pe]
    arrived, known_ps = times_of(build_device(machine), [pe], num_entries=0)
    assert (arrived, known_ps) == ({pe: time.there_ps}, time.there_ps + time.back_ps)


def test_a_command_of_several_packets_is_not_taken_for_one() -> None:
    machine = machine_of("host.command_bytes=4000", "packet_bytes=256")
    arrived, _ = times_of(build_device(machine), [PE], num_entries=0)
    assert command_times(machine, (PE,))[PE].there_ps <= arrived[PE]


@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("owner", [PE, PeCoord(0, 2, 3)])
@pytest.mark.parametrize("overrides", [(), ("cube.hbm.model=simple",)])
def test_an_access_of_a_byte_to_a_closed_row_takes_its_least_time(
    access: Access, owner: PeCoord, overrides: tuple[str, ...]
) -> None:
    machine = machine_of(*overrides)
    device = build_device(machine)
    graph = TaskGraph()
    graph.exchange(device.pe_access(PE, owner, access), 1, effect=7)
    device.engine.submit(graph)
    device.engine.run()
    is_write = access is Access.WRITE
    found = access_time(machine, PE, owner, is_write=is_write, is_open=False)
    assert device.engine.take_effects() == [(found.total_ps, 7)]
    assert access_time(machine, PE, owner, is_write=is_write, is_open=True).total_ps < (
        found.total_ps
    )


SHAPES = [
    ("sip.count=3",),
    ("sip.count=4", "fabric.kind=torus", "fabric.columns=2"),
    ("cube.noc={kind: ring, routers: 5}", "sip.count=2"),
    ("host.pcie.endpoint_ps=0", "sip.count=2", "fabric.latency_ps=900000"),
]


@pytest.mark.parametrize("overrides", SHAPES)
def test_no_way_between_pes_is_shorter_and_one_is_as_short(overrides: tuple[str, ...]) -> None:
    """A certificate of shortest ways: no link shortens one, and each ends with a link of it."""
    machine = machine_of(*overrides)
    between_ps(machine, PE, PeCoord(0, 1, 1))
    start = machine.node_of(NodeKind.PE_DMA, PE)
    found = machine.routes.least_ps[start]
    tight = {start}
    for number, link in enumerate(machine.links):
        if machine.host in (link.src, link.dst):
            continue
        size = machine.spec.flit_bytes
        step_ps = flit_ps(flit_bytes=size, bytes_per_us=link.bytes_per_us)
        through_ps = found[link.src] + step_ps + machine.links[number].latency_ps
        assert found[link.dst] <= through_ps
        if found[link.dst] == through_ps:
            tight.add(link.dst)
    assert tight == set(found) == set(range(len(machine.nodes))) - {machine.host}


@pytest.mark.parametrize("overrides", SHAPES)
def test_no_message_is_faster_than_the_least_time_between_its_pes(
    overrides: tuple[str, ...],
) -> None:
    machine = machine_of(*overrides)
    pes = pes_of(machine)
    for one, other in pairwise([*pes, *pes[::-3]]):
        if one != other:
            start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (one, other))
            routed_ps = way_ps(machine, start, end, Traffic.COMMUNICATION, one.pe, 1)
            assert 0 < between_ps(machine, one, other) <= routed_ps


def test_the_host_passes_no_message_on() -> None:
    machine = machine_of("host.pcie.endpoint_ps=0", "sip.count=2", "fabric.latency_ps=900000")
    assert between_ps(machine, PE, PeCoord(1, 0, 0)) > 2 * 900_000


@pytest.mark.parametrize(
    ("overrides", "expected_ps"),
    [
        (("sip.count=2",), 2 * 200_000 + 100_000),
        (("sip.count=3", "fabric.kind=ring"), 200_000),
        (("sip.count=1",), 0),
        (("sip.count=2", "fabric.switch_ps=0"), 400_000),
        (("sip.count=2", f"fabric.{LONG_WAY}", "fabric.parameters={extra_ps: 5}"), 0),
    ],
)
def test_sips_are_a_link_apart_or_two_and_a_switch(
    overrides: tuple[str, ...], expected_ps: int
) -> None:
    assert fabric_ps(machine_of(*overrides)) == expected_ps


def test_a_users_link_has_its_rate_and_no_latency() -> None:
    plain = machine_of()
    users = machine_of(f"cube.noc.{LONG_WAY}", "cube.noc.parameters={extra_ps: 5}")
    for number, link in enumerate(plain.links):
        found = least_link(users, number)
        is_users = link.kind in (LinkKind.NETWORK, LinkKind.ATTACHMENT, LinkKind.CONNECTION)
        if is_users and NodeKind.IO_NOC not in (
            plain.nodes[link.src].kind, plain.nodes[link.dst].kind
        ):  # fmt: skip
            assert (found.latency_ps, found.bytes_per_us) == (0, link.bytes_per_us)
        else:
            assert found == link
    dma, memory = (users.node_of(kind, PE) for kind in (NodeKind.PE_DMA, NodeKind.HBM_CTRL))
    ends = (dma, memory, Traffic.REQUEST, 0, 1)
    assert way_ps(users, *ends) == 2 * 250
    assert way_ps(users, *ends, is_least=False) == way_ps(plain, *ends)
