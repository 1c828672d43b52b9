"""What differs between two records, and that equal ones do not."""

from hypothesis import given
from hypothesis import strategies as st

from tests.records.run_records import FIGURES, run_record
from tilewright.records import MachineOfRun, RunParts
from tilewright.report.compare import compare_runs


def test_equal_records_differ_in_nothing() -> None:
    found = compare_runs(run_record(7), run_record(7), "a", "b")
    assert found.is_same_run
    assert found.speedup == 1
    assert (found.settings, found.machine, found.verdicts, found.parts) == ((), (), (), ())
    assert [(figure.name, figure.ratio) for figure in found.figures] == [("latency_ps", 1.0)]


def test_parameters_and_seed_are_told() -> None:
    before = run_record(7, parameters={"m": 128, "n": 1}, seed=0)
    after = run_record(7, parameters={"m": 256, "k": 2}, seed=3)
    found = compare_runs(before, after, "a", "b")
    changes = {each.name: (each.before, each.after) for each in found.settings}
    assert changes == {
        "seed": (0, 3),
        "parameters.m": (128, 256),
        "parameters.n": (1, None),
        "parameters.k": (None, 2),
    }
    assert not found.is_same_run


def test_a_number_and_the_truth_value_that_equals_it_differ() -> None:
    before, after = (run_record(7, parameters={"on": value}) for value in (1, True))
    (change,) = compare_runs(before, after, "a", "b").settings
    assert (change.before, change.after) == (1, True)


def test_fields_of_the_machine_are_told() -> None:
    before, after = (
        run_record(
            7,
            machine=MachineOfRun(
                name="ahbm",
                source="ahbm",
                figures=FIGURES,
                fields={"pe.vector.lanes": lanes, "a": 1},
            ),
        )
        for lanes in (512, 1024)
    )
    (change,) = compare_runs(before, after, "a", "b").machine
    assert (change.name, change.before, change.after) == ("pe.vector.lanes", 512, 1024)


@given(before=st.integers(1, 10**12), after=st.integers(1, 10**12))
def test_the_speedup_is_the_ratio_of_latencies(before: int, after: int) -> None:
    found = compare_runs(run_record(before), run_record(after), "a", "b")
    assert found.speedup == before / after
    (latency,) = [figure for figure in found.figures if figure.name == "latency_ps"]
    assert (latency.before, latency.after, latency.ratio) == (before, after, after / before)


def test_lines_of_kernels_are_compared() -> None:
    before = run_record(7, lines_ps={"load k.py:3": 4, "dot k.py:4": 2})
    after = run_record(7, lines_ps={"load k.py:3": 2, "dot k.py:4": 2})
    (line,) = compare_runs(before, after, "a", "b").lines
    assert (line.name, line.before, line.after, line.ratio) == ("load k.py:3", 4, 2, 0.5)


def test_parts_that_came_or_went_have_no_ratio() -> None:
    before = run_record(7, breakdown_ps=RunParts(gemm=7))
    after = run_record(7, breakdown_ps=RunParts(vector=7))
    found = {each.name: each.ratio for each in compare_runs(before, after, "a", "b").parts}
    assert found == {"gemm": 0.0, "vector": None}
