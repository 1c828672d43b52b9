"""DMA channels: never more under way than their window, and each has its own."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access, Channel, window_packets
from tilewright.engine import EngineKind, TaskGraph
from tilewright.errors import DeviceError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.parse import parse_machine

PE, FAR = PeCoord(0, 0, 0), PeCoord(0, 3, 0)
READ, WRITE = Access.READ, Access.WRITE


@cache
def machine_of(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


def under_way(device: Device, trip: int, num_bytes: int) -> tuple[int, int]:
    """The most packets between setting out and being back, and when the last one is."""
    engine = device.engine
    engine.set_trace(True)
    graph = TaskGraph()
    graph.exchange(trip, num_bytes, effect=0)
    engine.submit(graph)
    engine.run()
    ((end_ps, _),) = engine.take_effects()
    links = {server: device.machine.links[link] for link, server in device.links.items()}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for record in engine.take_trace():
        first.setdefault(record.packet_id, record.ready_ps)
        if record.server in links:
            last[record.packet_id] = record.tail_ps + links[record.server].latency_ps
    steps = [(at_ps, 1) for at_ps in first.values()] + [(at_ps, -1) for at_ps in last.values()]
    most = count = 0
    for _, step in sorted(steps):
        count += step
        most = max(most, count)
    return most, end_ps


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from(Access))
@settings(max_examples=20)
def test_no_more_packets_are_under_way_than_the_window_allows(
    window: int, packets: int, access: Access
) -> None:
    machine = machine_of(f"pe.dma.in_flight_bytes={1024 * window}")
    device = build_device(machine)
    most, _ = under_way(device, device.pe_access(PE, FAR, access), 1024 * packets)
    assert most == min(window, packets)


def test_a_window_counts_whole_packets_and_holds_at_least_one() -> None:
    for in_flight, packets in ((1024, 1), (2047, 1), (2048, 2), (65536, 64)):
        machine = machine_of(f"pe.dma.in_flight_bytes={in_flight}")
        assert window_packets(machine, Channel(PE, READ)) == packets


def test_the_host_has_its_own_window() -> None:
    machine = machine_of("host.in_flight_bytes=3 KiB")
    assert window_packets(machine, Channel(SipCoord(0), WRITE)) == 3
    assert window_packets(machine, Channel(PE, WRITE)) == 64
    device = build_device(machine)
    assert under_way(device, device.host_access(PE, WRITE), 10 * 1024)[0] == 3


@every_engine
def test_with_one_packet_under_way_every_packet_takes_a_whole_trip(kind: EngineKind) -> None:
    machine = machine_of("pe.dma.in_flight_bytes=1 KiB", "cube.hbm.model=simple")
    times = []
    for packets in (1, 5):
        device = build_device(machine, kind)
        times.append(under_way(device, device.pe_access(PE, FAR, READ), 1024 * packets)[1])
    assert times[1] == 5 * times[0]


def end_of_both(machine: Machine, one: Channel, other: Channel) -> int:
    device = build_device(machine)
    for owner, channel in enumerate((one, other)):
        source = device.machine.node_of(NodeKind.PE_DMA, PE)
        trip = device.round_trip(source, device.memory_node(FAR), channel, spread=0)
        graph = TaskGraph()
        graph.exchange(trip, 4096, effect=owner, tag=65536 * owner)
        device.engine.submit(graph, owner=owner)
    device.engine.run()
    return max(at_ps for at_ps, _ in device.engine.take_effects())


@pytest.mark.parametrize("other", [Channel(PE, WRITE), Channel(PE, READ, index=1)])
def test_another_channel_has_a_window_of_its_own(other: Channel) -> None:
    window = "pe.dma.in_flight_bytes=1 KiB"
    machine = machine_of(window, "pe.dma.read_channels=2", "cube.hbm.model=simple")
    one = Channel(PE, READ)
    shared_ps = end_of_both(machine, one, one)
    assert end_of_both(machine, one, other) < 0.6 * shared_ps


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        (Channel(PE, READ, 2), "read channel 2 of sip0.cube0.pe0, expected one of its 2,"),
        (Channel(PE, WRITE, 1), "write channel 1 of sip0.cube0.pe0, expected one of its 1,"),
        (Channel(PE, READ, -1), "read channel -1 of sip0.cube0.pe0, expected one of its 2,"),
        (Channel(SipCoord(0), WRITE, 1), "write channel 1 of sip0, expected one of its 1,"),
    ],
)
def test_a_channel_that_a_dma_does_not_have_is_refused(channel: Channel, words: str) -> None:
    machine = machine_of("pe.dma.read_channels=2")
    with pytest.raises(DeviceError, match=f"DMA: found {words} counted from 0; name another"):
        end_of_both(machine, channel, channel)
