"""Where the time of a run goes: by part, by line, and by field against runs on other machines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tilewright.analysis.advice.change import change_of
from tilewright.analysis.breakdown import break_down_run, chain_of, lines_of_run
from tilewright.analysis.trace.critical_path import ProgramPath
from tilewright.engine import EngineKind
from tilewright.executor.run import Counters
from tilewright.machine.coords import PeCoord
from tilewright.records import RunParts
from tilewright.runtime.request import LaunchReport
from tilewright.validation.advice import Trial, trial_of

PE = PeCoord(0, 0, 0)


def launch(owner: int, *times_ps: int) -> LaunchReport:
    """Submission, first and last start, last end, completion."""
    submitted, first, last, end, completed = times_ps
    return LaunchReport(
        "k", "k", (1,), 1, (PE,), submitted, first, last, end, completed, PE, owner, Counters()
    )


@st.composite
def launches(draw: st.DrawFn) -> list[LaunchReport]:
    found = []
    for owner in range(draw(st.integers(0, 5))):
        times = sorted(draw(st.lists(st.integers(0, 300), min_size=5, max_size=5)))
        found.append(launch(owner, *times))
    return found


@given(found=launches(), traced=st.sets(st.integers(0, 5)), before_ps=st.integers(0, 50))
def test_the_parts_of_any_launches_add_up_to_their_window(
    found: list[LaunchReport], traced: set[int], before_ps: int
) -> None:
    start_ps = min((each.submitted_ps for each in found), default=before_ps) - before_ps
    end_ps = max((each.completed_ps for each in found), default=before_ps)
    paths = {
        owner: ProgramPath(each.last_start_ps, each.last_end_ps, {"gemm": span_ps})
        for owner, each in enumerate(found)
        if owner in traced and (span_ps := each.last_end_ps - each.last_start_ps)
    }
    parts = break_down_run((start_ps, end_ps), found, paths)
    assert parts.total_ps == end_ps - start_ps


def test_a_launch_is_dispatch_path_and_completion() -> None:
    one = launch(7, 100, 110, 120, 180, 200)
    path = ProgramPath(120, 180, {"gemm": 50, "issue": 10})
    parts = break_down_run((100, 200), [one], {7: path})
    assert parts == RunParts(dispatch=20, gemm=50, issue=10, completion=20)


def test_a_path_that_was_cut_leaves_execution_that_is_not_told_apart() -> None:
    one = launch(7, 100, 110, 120, 180, 200)
    path = ProgramPath(150, 180, {"gemm": 30})
    parts = break_down_run((100, 200), [one], {7: path}, cut={7})
    assert parts == RunParts(dispatch=10, execution=40, gemm=30, completion=20)


def test_time_between_launches_is_the_host_s() -> None:
    chain = [launch(1, 0, 1, 1, 9, 10), launch(2, 25, 26, 26, 29, 30)]
    parts = break_down_run((0, 30), chain, {})
    assert parts == RunParts(dispatch=2, execution=11, completion=2, host_transfer=15)


def test_lines_are_those_of_the_launches_in_the_chain() -> None:
    both = [launch(1, 0, 1, 1, 9, 10), launch(2, 0, 2, 2, 18, 20), launch(3, 30, 31, 31, 39, 40)]
    lines_ps = {1: {"load": 8}, 2: {"load": 5, "dot": 11}, 3: {"dot": 8}}
    found = lines_of_run((0, 40), both, lines_ps)
    assert list(found.items()) == [("dot", 19), ("load", 5)]


def test_of_launches_that_overlap_the_last_one_counts() -> None:
    both = [launch(1, 0, 1, 1, 9, 10), launch(2, 0, 2, 2, 18, 20)]
    parts = break_down_run((0, 20), both, {})
    assert parts == RunParts(dispatch=2, execution=16, completion=2)


def test_launches_one_behind_the_other_are_a_chain_however_many_they_are() -> None:
    """Comparing each with each would take longer than a test may."""
    found = [
        launch(number, *(10 * number + at for at in (0, 1, 1, 9, 10))) for number in range(50_000)
    ]
    window = (0, found[-1].completed_ps)
    assert list(chain_of(window, found)) == found[::-1]


@given(found=launches())
def test_each_launch_of_a_chain_completed_last_before_the_one_behind_it(
    found: list[LaunchReport],
) -> None:
    at_ps = 300
    for each in chain_of((0, at_ps), found):
        before = [one for one in found if one.completed_ps <= at_ps and one.submitted_ps < at_ps]
        assert each.completed_ps == max(one.completed_ps for one in before)
        at_ps = each.submitted_ps
    assert not [one for one in found if one.completed_ps <= at_ps and one.submitted_ps < at_ps > 0]


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
