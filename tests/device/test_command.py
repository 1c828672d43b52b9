from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.engine import EngineKind, ServerSpec, TaskGraph, build_engine
from tilewright.machine.spec import MachineSpec

gaps = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def done_ps(arrivals_ps: list[int], command_ps: int) -> list[int]:
    """Return when a processor that was idle is done with each command: the law on paper."""
    done: list[int] = []
    for arrival_ps in arrivals_ps:
        done.append(max([arrival_ps, *done]) + command_ps)
    return done


@every_engine
@given(apart=gaps, command_ps=st.integers(1, 30))
def test_commands_on_an_engine_are_done_when_the_law_says(
    kind: EngineKind, apart: list[int], command_ps: int
) -> None:
    engine = build_engine(kind)
    route = engine.add_route([engine.add_server(ServerSpec("sip0.cube0.m_cpu"))])
    arrivals_ps = list(accumulate(apart))
    graph = TaskGraph()
    for index, arrival_ps in enumerate(arrivals_ps):
        graph.hold(route, hold_ps=command_ps, delay_ps=arrival_ps, effect=index)
    engine.submit(graph)
    engine.run()
    found = [at_ps for at_ps, _ in sorted(engine.take_effects(), key=lambda entry: entry[1])]
    assert found == done_ps(arrivals_ps, command_ps)


def test_a_launch_reaches_the_last_pe_of_a_sip_after_every_fan_out_on_its_way() -> None:
    machine = MachineSpec()
    io_ps, m_ps = machine.sip.io_cpu.command_ps, machine.cube.m_cpu.command_ps
    starts_ps = [
        done_ps([at_pe_ps], machine.pe.cpu.command_ps)[0]
        for at_cube_ps in done_ps([0] * 16, io_ps)
        for at_pe_ps in done_ps([at_cube_ps] * 8, m_ps)
    ]
    assert starts_ps[0] == 10_000 + 5_000 + 2_000
    assert starts_ps[-1] == 16 * 10_000 + 8 * 5_000 + 2_000
