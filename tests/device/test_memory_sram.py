"""The shared memory of a cube: traffic reaches it, at its rate and no faster."""

from functools import cache

import pytest

from tests.kinds import every_engine
from tilewright.device.build import build_device
from tilewright.device.dma import Access, Channel
from tilewright.engine import EngineKind, TaskGraph
from tilewright.errors import EngineError
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic, zero_load_ps

PE = PeCoord(0, 0, 0)
MIB = 2**20


@cache
def machine_of(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm-small", overrides))


def time_ps(
    machine: Machine, kind: EngineKind, access: Access, num_bytes: int, address: int = 0
) -> int:
    device = build_device(machine, kind)
    ends = device.machine.node_of(NodeKind.PE_DMA, PE), device.machine.node_of(NodeKind.SRAM, PE)
    trip = device.round_trip(*ends, Channel(PE, access), spread=0)
    graph = TaskGraph()
    graph.exchange(trip, num_bytes, effect=0, tag=address)
    device.engine.submit(graph)
    device.engine.run()
    ((at_ps, _),) = device.engine.take_effects()
    memory = device.engine.statistics().servers[device.memories[ends[1]]]
    assert memory.packets == -(-num_bytes // 1024)
    return at_ps


@every_engine
@pytest.mark.parametrize("access", list(Access))
def test_one_access_takes_its_way_and_its_bytes_at_the_rate(
    kind: EngineKind, access: Access
) -> None:
    machine = machine_of()
    ends = machine.node_id("sip0.cube0.pe0.dma"), machine.node_id("sip0.cube0.sram")
    out = machine.route(ends[0], ends[1], Traffic.REQUEST, 0)
    back = machine.route(ends[1], ends[0], Traffic.RESPONSE, 0)
    flits = (16, 1) if access is Access.WRITE else (1, 16)
    ways_ps = [
        zero_load_ps([machine.links[link] for link, _ in way], num_flits=count, flit_bytes=64)
        for way, count in zip((out, back), flits, strict=True)
    ]
    assert time_ps(machine, kind, access, 1024) == sum(ways_ps) + 1024 * 1000 // 128


@every_engine
@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("rate", [128_000, 32_000])
def test_a_stream_reaches_the_rate_of_the_memory(
    kind: EngineKind, access: Access, rate: int
) -> None:
    size = MIB // 4
    machine = machine_of(f"cube.sram.bytes_per_us={rate}")
    least_ps = size * 10**6 // rate
    assert least_ps <= time_ps(machine, kind, access, size) <= 1.03 * least_ps


def test_a_longer_access_is_a_longer_way_there() -> None:
    plain, slow = machine_of(), machine_of("cube.sram.access_ps=9 ns")
    times = [time_ps(one, EngineKind.REFERENCE, Access.READ, 64) for one in (plain, slow)]
    assert times[1] - times[0] == 7_000


def test_bytes_beyond_its_capacity_are_refused() -> None:
    machine = machine_of("cube.sram.capacity_bytes=64 KiB")
    with pytest.raises(EngineError):
        time_ps(machine, EngineKind.REFERENCE, Access.READ, 1024, address=64 * 1024)
