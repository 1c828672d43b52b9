import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.errors import PlanError, RecordError, UsageError
from tilewright.evaluation import SourceKind, SourceSpec
from tilewright.records import read_record
from tilewright.records.attention.compare import AttentionCompareRecord, CompareState
from tilewright.studies.compare.flows import CompareSpec, compare_flows

SPEC = CompareSpec(
    flows=("quest", "random", "oracle"),
    budgets=(4, 99),
    source=SourceKind.SYNTHETIC,
    sizes=SourceSpec(context=120, steps=4, cases=2, page_size=8),
)


def silent(done: int, total: int, what: str) -> None:
    del done, total, what


def compared(**changes: object) -> AttentionCompareRecord:
    return compare_flows(replace(SPEC, **changes), tell=silent)  # type: ignore[arg-type]


def same(record: AttentionCompareRecord) -> AttentionCompareRecord:
    """Without what differs from run to run."""
    return record.model_copy(update={"compare_s": 0.0, "trials_kept": 0, "state": None})


def test_there_is_a_row_for_every_flow_and_budget_over_all_cases() -> None:
    record = compared()
    asked = [(flow, budget) for flow in SPEC.flows for budget in SPEC.budgets]
    assert [(row.flow, row.budget) for row in record.rows] == asked
    assert {(row.samples, row.pages, row.context) for row in record.rows} == {(8, 15, 120)}
    assert {row.latency_ps for row in record.rows} == {None}
    assert all(row.kl is None and row.needle_cases == 2 * 16 for row in record.rows)
    assert same(record) == same(compared())


def test_flows_are_ordered_and_equal_ones_are_called_noise() -> None:
    differences = compared().differences
    few = [(one.flow, one.behind, one.is_noise) for one in differences if one.budget == 4]
    assert few == [("oracle", "quest", False), ("quest", "random", False)]
    assert all(one.is_noise for one in differences if one.budget == 99)


def test_of_two_flows_that_read_as_much_the_one_with_more_mass_is_on_the_front() -> None:
    first, second = compared(flows=("streaming_llm", "random"), budgets=(4,)).rows
    assert first.bytes == second.bytes
    assert first.mass != second.mass
    assert first.is_pareto is (first.mass > second.mass)
    assert second.is_pareto is not first.is_pareto


def test_a_second_run_takes_what_the_first_has_completed(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = compared(flows=("quest",), state=state)
    second = compared(state=state)
    assert (first.trials_kept, second.trials_kept) == (0, 4)
    assert same(second) == same(compared())
    assert len(read_record(state, CompareState).trials) == 12


def test_trials_of_other_sizes_are_not_taken(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    compared(state=state)
    sizes = SPEC.sizes
    for other in (replace(sizes, seed=1), replace(sizes, steps=3), replace(sizes, page_size=4)):
        assert compared(state=state, sizes=other, flows=("quest",)).trials_kept == 0
    assert compared(state=state, dense_layers=1, flows=("quest",)).trials_kept == 0
    assert compared(state=state, flows=("quest",)).trials_kept == 4


def test_an_interrupted_run_shows_complete_rows_and_is_continued(tmp_path: Path) -> None:
    state = tmp_path / "state.json"

    def interrupt(done: int, total: int, what: str) -> None:
        if done == 9 and what:
            raise KeyboardInterrupt
        del total

    cut = compare_flows(replace(SPEC, state=state), tell=interrupt)
    assert cut.status == "interrupted"
    assert [(row.flow, row.budget) for row in cut.rows] == [
        ("quest", 4),
        ("quest", 99),
        ("random", 4),
    ]
    whole = compared(state=state)
    assert (whole.status, whole.trials_kept) == ("complete", 9)
    assert same(whole) == same(compared())


def test_a_state_that_is_no_state_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text("{}")
    with pytest.raises(RecordError):
        compared(state=state)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="a flow twice"):
        compared(flows=("quest", "quest"))
    with pytest.raises(PlanError, match="at least the 2 reserved"):
        compared(budgets=(1,))


def test_processes_that_share_a_state_lose_nothing(tmp_path: Path) -> None:
    state, budgets = tmp_path / "state.json", tuple(range(3, 13))
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(
            target=compared, kwargs={"flows": (flow,), "budgets": budgets, "state": state}
        )
        for flow in SPEC.flows
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    kept = read_record(state, CompareState).trials
    asked = {(flow, budget, case) for flow in SPEC.flows for budget in budgets for case in range(2)}
    assert {(each.flow, each.budget, each.case) for each in kept} == asked
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
