"""Chains of launches: whatever they are, the parts add up to the window."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis.breakdown import break_down_run, chain_of, lines_of_run
from tilewright.analysis.trace.critical_path import ProgramPath
from tilewright.executor.run import Counters
from tilewright.machine.coords import PeCoord
from tilewright.records import RunParts
from tilewright.runtime.request import LaunchReport

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
