import pytest
from pydantic import ValidationError

from tests.report.quality.records import compare_record, quality_row
from tilewright.records.attention.compare import FlowDifference
from tilewright.report.quality.table import order_lines, quality_view


def difference(budget: int, flow: str, behind: str, *, is_noise: bool) -> FlowDifference:
    return FlowDifference(
        budget=budget,
        flow=flow,
        behind=behind,
        mass_difference=0.1,
        mass_difference_ci=(0.0, 0.2),
        is_noise=is_noise,
    )


def test_each_budget_has_a_line_that_tells_noise_from_order() -> None:
    found = order_lines(
        (
            difference(8, "a", "b", is_noise=False),
            difference(8, "b", "c", is_noise=True),
            difference(16, "c", "a", is_noise=True),
        )
    )
    assert list(found) == ["  8 pages: a > b ~ c", " 16 pages: c ~ a"]


def timed_row(machine: str, latency_ps: int) -> dict[str, object]:
    return {
        "machine": machine,
        "latency_ps": latency_ps,
        "dense_latency_ps": 12_000_000,
        "latency_selection": "recorded",
    }


def test_time_and_what_it_gains_stand_in_the_rows_of_their_machine() -> None:
    rows = [
        quality_row("quest", 4, is_pareto=True, **timed_row("big", 3_000_000)),
        quality_row("quest", 4, **timed_row("small", 8_000_000)),
    ]
    lines = quality_view(compare_record(*rows)).plain.splitlines()
    heading = lines[2].split()
    assert heading[-2:] == ["time", "faster"]
    assert not {"worst", "stable", "ppl"} & set(heading)
    assert lines[3:7:2] == ["quest on big", "quest on small"]
    assert lines[4].startswith("*   4")
    assert lines[4].split()[-3:] == ["3", "us", "4.00x"]
    assert lines[6].split()[-3:] == ["8", "us", "1.50x"]
    assert "Dense attention on small: 12 us." in lines
    assert max(map(len, lines)) <= 80


def test_a_refresh_tells_how_near_two_times_may_be() -> None:
    rows = [quality_row("quest", 4, **timed_row(name, 1_000_000)) for name in ("big", "small")]
    text = " ".join(quality_view(compare_record(*rows)).plain.split())
    assert text.count("A refresh of the memory of big and small takes 530 ns") == 1


def test_without_machines_there_is_no_word_of_time() -> None:
    text = quality_view(compare_record(quality_row("quest", 4))).plain
    assert "worst" in text.splitlines()[2]
    assert "time" not in text
    assert "fewer bytes" in text


def test_what_could_not_be_simulated_is_a_dash_and_its_reason_stands_below_once() -> None:
    absent = {
        "machine": "big",
        "dense_latency_ps": 5,
        "latency_missing": "flow 'x': found state, expected none; run it elsewhere",
    }
    rows = [quality_row("x", budget, **absent) for budget in (4, 8)]
    lines = quality_view(compare_record(*rows)).plain.splitlines()
    assert [line.split()[-2:] for line in lines[4:6]] == [["-", "-"]] * 2
    text = " ".join(lines)
    assert text.count("No time on big for x: flow 'x': found state, expected none;") == 1


def test_dense_attention_that_could_not_be_simulated_says_why() -> None:
    row = quality_row(
        "x",
        4,
        machine="big",
        latency_ps=7,
        latency_selection="uniform",
        dense_latency_missing="no room",
    )
    text = quality_view(compare_record(row)).plain
    assert "Dense attention on big: not simulated: no room." in text
    assert "pages drawn at random" in " ".join(text.split())


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": "big", "dense_latency_ps": 1},
        {"machine": "big", "dense_latency_ps": 1, "latency_ps": 1, "latency_missing": "why"},
        {"latency_missing": "no machine"},
        {"machine": "big", "latency_ps": 1},
    ],
)
def test_a_row_has_a_latency_or_a_reason_and_never_both(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="or the reason why"):
        quality_row("x", 4, **changes)
