from collections.abc import Sequence

import pytest

from tilewright.device.build import Device, build_device
from tilewright.device.command import CommandPath
from tilewright.engine import EngineKind, Hub, TaskGraph
from tilewright.errors import DeadlockError
from tilewright.machine.build import build_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import Link, NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic, zero_load_ps

FAR = PeCoord(sip=0, cube=15, pe=7)


def times_of(
    device: Device, pes: Sequence[PeCoord], num_entries: int, *, is_shared: bool = True
) -> tuple[dict[PeCoord, int], int]:
    """When each PE has a command that it answers at once, and when the host knows."""
    hub, path = Hub(device.engine), CommandPath(device)
    delivery = path.deliver(dict.fromkeys(pes, num_entries), is_shared=is_shared)
    for pe in pes:
        path.answer(delivery.graph, pe, delivery.answers[pe], (delivery.arrivals[pe],))
    first = device.engine.submit(delivery.graph)
    arrived: dict[PeCoord, int] = {}

    def note(pe: PeCoord, task: int) -> None:
        hub.wait(task)
        arrived[pe] = hub.now_ps

    for pe, task in delivery.arrivals.items():
        hub.spawn(note, pe, device.engine.task_id(delivery.graph, first, task))
    end = device.engine.task_id(delivery.graph, first, delivery.end)

    def host() -> int:
        hub.wait(end)
        return hub.now_ps

    program = hub.spawn(host)
    hub.run()
    return arrived, program.result


def leg_ps(
    device: Device, source: int, target: int, traffic: Traffic, spread: int, size: int
) -> int:
    machine = device.machine
    links: list[Link] = [
        machine.links[link] for link, _ in machine.route(source, target, traffic, spread)
    ]
    flit_bytes = machine.spec.flit_bytes
    return zero_load_ps(links, num_flits=-(-size // flit_bytes), flit_bytes=flit_bytes)


@pytest.mark.parametrize("preset", ["ahbm", "ahbm-small", "crossbar-chip"])
@pytest.mark.parametrize("engine", EngineKind)
def test_a_lone_command_takes_the_sum_of_its_links_and_processors(
    preset: str, engine: EngineKind
) -> None:
    device = build_device(build_machine(parse_machine(preset)), engine)
    machine, spec = device.machine, device.machine.spec
    pe = PeCoord(0, 0, 1)
    arrived, known_ps = times_of(device, [pe], num_entries=3)
    io_cpu = next(n for n, node in enumerate(machine.nodes) if node.kind is NodeKind.IO_CPU)
    m_cpu, cpu = machine.node_of(NodeKind.M_CPU, pe), machine.node_of(NodeKind.PE_CPU, pe)
    there, back = Traffic.REQUEST, Traffic.RESPONSE
    size = spec.host.command_bytes + 3 * spec.host.entry_bytes
    expected_ps = (
        leg_ps(device, machine.host, io_cpu, there, 0, size)
        + spec.sip.io_cpu.command_ps
        + leg_ps(device, io_cpu, m_cpu, there, 0, size)
        + spec.cube.m_cpu.command_ps
        + leg_ps(device, m_cpu, cpu, there, pe.pe, size)
        + spec.pe.cpu.command_ps
    )
    assert arrived == {pe: expected_ps}
    answer = spec.host.command_bytes
    assert known_ps - expected_ps == (
        spec.pe.cpu.command_ps
        + leg_ps(device, cpu, m_cpu, back, pe.pe, answer)
        + spec.cube.m_cpu.command_ps
        + leg_ps(device, m_cpu, io_cpu, back, 0, answer)
        + spec.sip.io_cpu.command_ps
        + leg_ps(device, io_cpu, machine.host, back, 0, answer)
    )


def test_commands_to_many_pes_arrive_with_the_skew_of_their_processors() -> None:
    device = build_device(build_machine(parse_machine("ahbm")))
    spec = device.machine.spec
    cubes = [PeCoord(0, cube, pe) for cube in range(16) for pe in range(8)]
    arrived, known_ps = times_of(device, cubes, num_entries=0)
    alone, _ = times_of(build_device(device.machine), [FAR], num_entries=0)
    # the IO CPU hands on to 16 cubes one after the other, each M_CPU to 8 PEs
    queued_ps = 15 * spec.sip.io_cpu.command_ps + 7 * spec.cube.m_cpu.command_ps
    assert arrived[FAR] >= alone[FAR] + queued_ps
    assert known_ps > max(arrived.values())


def test_entries_of_one_pe_travel_to_it_alone() -> None:
    machine = build_machine(parse_machine("ahbm-small"))
    pes = [PeCoord(0, 0, pe) for pe in range(machine.spec.cube.pes)]
    shared, _ = times_of(build_device(machine), pes, num_entries=40)
    apart, _ = times_of(build_device(machine), pes, num_entries=40, is_shared=False)
    assert all(apart[pe] > shared[pe] for pe in pes)


def test_an_answer_that_never_comes_leaves_the_host_waiting() -> None:
    device = build_device(build_machine(parse_machine("ahbm-small")))
    path = CommandPath(device)
    pes = [PeCoord(0, 0, 0), PeCoord(0, 0, 1)]
    delivery = path.deliver(dict.fromkeys(pes, 0), is_shared=True)
    first = device.engine.submit(delivery.graph)
    graph = TaskGraph()
    path.answer(graph, pes[0], delivery.answers[pes[0]], ())
    device.engine.submit(graph)
    end = device.engine.task_id(delivery.graph, first, delivery.end)
    assert device.engine.watch(end)
    with pytest.raises(DeadlockError, match=r"answers of sip0\.cube0 to command 1"):
        device.engine.run()
