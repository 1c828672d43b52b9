from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.command import CommandProcessor
from tilewright.engine import EngineKind, TaskGraph, build_engine
from tilewright.errors import UnitError
from tilewright.machine.spec import CommandProcessorSpec, MachineSpec

gaps = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def processor_of(command_ps: int) -> CommandProcessor:
    return CommandProcessor("sip0.cube0.m_cpu", CommandProcessorSpec(command_ps=command_ps))


@given(
    command_ps=st.integers(1, 10**6), now_ps=st.integers(0, 10**12), num_commands=st.integers(1, 99)
)
def test_n_commands_that_wait_at_t_are_done_n_times_their_time_later(
    command_ps: int, now_ps: int, num_commands: int
) -> None:
    done_ps = processor_of(command_ps).done_ps([now_ps] * num_commands)
    assert done_ps[-1] == now_ps + num_commands * command_ps
    assert done_ps == processor_of(command_ps).fan_out_ps(now_ps, num_commands)


@every_engine
@given(apart=gaps, command_ps=st.integers(1, 30))
def test_commands_on_an_engine_are_done_when_the_law_says(
    kind: EngineKind, apart: list[int], command_ps: int
) -> None:
    processor = processor_of(command_ps)
    engine = build_engine(kind)
    route = engine.add_route([engine.add_server(processor.server())])
    arrivals_ps = list(accumulate(apart))
    graph = TaskGraph()
    for index, arrival_ps in enumerate(arrivals_ps):
        graph.hold(route, hold_ps=processor.spec.command_ps, delay_ps=arrival_ps, effect=index)
    engine.submit(graph)
    engine.run()
    done_ps = [at_ps for at_ps, _ in sorted(engine.take_effects(), key=lambda entry: entry[1])]
    assert tuple(done_ps) == processor.done_ps(arrivals_ps)


def test_a_launch_reaches_the_last_pe_of_a_sip_after_every_fan_out_on_its_way() -> None:
    machine = MachineSpec()
    io_cpu = CommandProcessor("io_cpu", machine.sip.io_cpu)
    m_cpu = CommandProcessor("m_cpu", machine.cube.m_cpu)
    pe_cpu = CommandProcessor("pe_cpu", machine.pe.cpu)
    starts_ps = [
        pe_cpu.done_ps([at_pe_ps])[0]
        for at_cube_ps in io_cpu.fan_out_ps(0, 16)
        for at_pe_ps in m_cpu.fan_out_ps(at_cube_ps, 8)
    ]
    assert starts_ps[0] == 10_000 + 5_000 + 2_000
    assert starts_ps[-1] == 16 * 10_000 + 8 * 5_000 + 2_000


def test_arrivals_out_of_order_and_a_fan_out_to_nobody_are_refused() -> None:
    with pytest.raises(UnitError, match="found an arrival at 3 ps after one at 5 ps"):
        processor_of(1).done_ps([5, 3])
    with pytest.raises(UnitError, match=r"sip0\.cube0\.m_cpu: found num_targets = 0"):
        processor_of(1).fan_out_ps(0, 0)
