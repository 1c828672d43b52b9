"""Points of sweeps, and what they leave."""

from pathlib import Path

import pytest

from tests.report.drawn import tipped, tips
from tests.report.pictures import sweep_record
from tests.studies.run_programs import SCALE, request_of, written
from tilewright.errors import BenchError, ProgramError
from tilewright.programs.builtin.gemm import sweep_points
from tilewright.report.format import PART_COLOURS, PART_WORDS
from tilewright.report.run.sweep import draw_sweep, sweep_view
from tilewright.studies.run.command import RunWatch
from tilewright.studies.run.source import find_source
from tilewright.studies.run.sweep import run_sweep, sweep_of


def test_values_are_combined_in_the_order_of_the_options() -> None:
    points = sweep_of(find_source("matmul"), ["m=64,128", "staging=ref/ref,load/ref"])
    assert points == [
        {"m": 64, "staging": "ref/ref"},
        {"m": 64, "staging": "load/ref"},
        {"m": 128, "staging": "ref/ref"},
        {"m": 128, "staging": "load/ref"},
    ]


def test_a_program_may_have_points_of_its_own() -> None:
    assert sweep_of(find_source("matmul"), ["ready"]) == sweep_points()


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["m"], "NAME=VALUE,VALUE or ready"),
        (["m="], "NAME=VALUE,VALUE or ready"),
        (["m=1,x"], "m=x"),
        (["mm=1"], "a parameter 'mm'"),
        (["m=1", "m=2"], "a parameter twice"),
        (["ready", "m=2"], "it alone"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(texts: list[str], words: str) -> None:
    with pytest.raises(BenchError, match=words):
        sweep_of(find_source("matmul"), texts)


def test_the_points_of_a_sweep_are_runs(tmp_path: Path) -> None:
    request = request_of(written(tmp_path, SCALE), n=64)
    texts: list[str] = []
    record = run_sweep(request, [{"times": 1}, {"times": 2}], RunWatch(progress=texts.append))
    assert texts == ["2 points, 1 at a time", "1 of 2 done: times=1", "2 of 2 done: times=2"]
    assert record.parameters == {"n": 64}
    once, twice = record.points
    assert twice.latency_ps > 1.5 * once.latency_ps
    assert once.breakdown_ps.total_ps == once.latency_ps
    assert "times=2" in sweep_view(record).plain
    picture = draw_sweep(record)
    assert picture == draw_sweep(record)
    dispatches = [tip for tip in tips(picture) if tip.startswith(PART_WORDS["dispatch"])]
    assert len(dispatches) == len(record.points)


def test_bars_are_as_long_as_the_latencies_and_their_bounds() -> None:
    shapes = dict(tipped(draw_sweep(sweep_record(1_000_000, 4_000_000))))
    short, long = shapes["1 us"], shapes["4 us"]  # what is above the bound
    assert long.right - long.left == pytest.approx(4 * (short.right - short.left), abs=0.1)
    bound = shapes["bound: 25 %"]  # of the longer one
    assert (bound.right, bound.right - bound.left) == pytest.approx(
        (long.left, (long.right - long.left) / 3), abs=0.1
    )


def test_a_sweep_that_was_interrupted_at_once_is_drawn_without_bars() -> None:
    assert tips(draw_sweep(sweep_record())) == []


def test_every_part_has_words_and_a_colour_of_its_own() -> None:
    assert set(PART_WORDS) == set(PART_COLOURS)
    assert len(set(PART_COLOURS.values())) == len(PART_COLOURS)


def test_an_interrupted_sweep_keeps_the_points_that_are_complete(tmp_path: Path) -> None:
    text = SCALE + "    if times == 2:\n        raise KeyboardInterrupt\n"
    record = run_sweep(request_of(written(tmp_path, text), n=64), [{"times": 1}, {"times": 2}])
    assert (record.status, record.ok, len(record.points)) == ("interrupted", False, 1)
    assert "INTERRUPTED" in sweep_view(record).plain


def test_several_processes_find_the_same_in_the_same_order(tmp_path: Path) -> None:
    request = request_of(written(tmp_path, SCALE), n=64)
    points = [{"times": times} for times in (5, 1, 3)]
    assert run_sweep(request, points, num_processes=3) == run_sweep(request, points)


def test_points_that_run_once_have_only_the_parts_of_launches(tmp_path: Path) -> None:
    request = request_of(written(tmp_path, SCALE), n=64)
    once, twice = (
        run_sweep(request, [{"times": 1}], RunWatch(is_once=is_once)).points[0].breakdown_ps
        for is_once in (True, False)
    )
    assert (once.execution > 0, once.vector) == (True, 0)
    assert (twice.execution, twice.vector > 0) == (0, True)


def test_an_error_of_one_point_is_that_of_the_sweep(tmp_path: Path) -> None:
    text = SCALE + "    if times == 2:\n        raise ValueError('two')\n"
    request = request_of(written(tmp_path, text), n=64)
    points = [{"times": 1}, {"times": 2}, {"times": 3}]
    with pytest.raises(ProgramError, match="two"):
        run_sweep(request, points, num_processes=2)
