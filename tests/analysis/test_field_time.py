"""What fields set on the path of a run, against runs on machines with other values of them."""

import pytest

from tests.kinds import needs_both_engines
from tilewright.analysis.advice.change import change_of
from tilewright.engine import EngineKind
from tilewright.validation.advice import Trial, trial_of

QUIET = "cube.hbm.refresh.kind=none"
CHAIN = {"hops": 16, "where": "far_cube"}
LATENCIES = (
    "host.pcie.endpoint_ps",
    "sip.io.noc_ps",
    "sip.io_cpu.command_ps",
    "cube.m_cpu.command_ps",
    "cube.ucie.side_ps",
    "cube.noc.router_ps",
    "cube.hbm.timing.clock_ps",
    "pe.cpu.command_ps",
    "pe.scheduler.command_ps",
    "pe.mmu.walk_ps",
)


@pytest.fixture(scope="module")
def chain() -> Trial:
    """Loads that wait for each other: nothing overlaps, so every path is the only one."""
    return trial_of(EngineKind.NATIVE, "pointer_chase", "ahbm-small", (QUIET,), CHAIN)


@needs_both_engines
@pytest.mark.parametrize("field", LATENCIES)
def test_a_chain_loses_exactly_half_of_what_a_halved_latency_sets(chain: Trial, field: str) -> None:
    path = chain.record.path
    assert path is not None
    change = change_of(field, chain.record.machine.fields)
    assert change is not None
    gain = chain.gain(change)
    assert gain.base_ps[0] - gain.changed_ps[0] == path.work_ps[field] // 2 > 0


@needs_both_engines
def test_the_least_times_of_a_chain_are_those_of_its_path_but_for_rows(chain: Trial) -> None:
    path = chain.record.path
    assert path is not None
    memory = "cube.hbm.timing.clock_ps"
    others = {name: time_ps for name, time_ps in path.work_ps.items() if name != memory}
    assert {name: path.least_ps[name] for name in others} == others
    timing = chain.meter.request.machine.spec.cube.hbm.timing
    open_clocks, closed_clocks = 20 + 2, 39 + 20 + 2  # CL and BL; RCD before them
    assert path.least_ps[memory] >= path.num_accesses * open_clocks * timing.clock_ps // 2
    assert path.work_ps[memory] <= path.num_accesses * closed_clocks * timing.clock_ps
    assert path.command_ps.keys() <= path.least_ps.keys()


@needs_both_engines
def test_a_waiting_program_is_traced_together_with_those_who_send_to_it() -> None:
    parameters = {"ranks": 4, "bytes": 1024}
    trial = trial_of(EngineKind.NATIVE, "allreduce_ring", "ahbm-small", (QUIET,), parameters)
    record, path = trial.record, trial.record.path
    assert path is not None
    assert record.breakdown_ps.message_wait > 0.2 * record.latency_ps
    assert path.unknown_ps == 0
    assert sum(path.least_ps.values()) > 0.8 * record.latency_ps
