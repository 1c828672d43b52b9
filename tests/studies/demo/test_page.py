import pytest

from tests.studies.demo_records import demo_record
from tilewright.analysis.phases import spread_of
from tilewright.machine.build import build_machine
from tilewright.machine.parse import parse_machine
from tilewright.records.demo import DemoFlow, DemoRecord, DemoStep
from tilewright.report.decode_page.page import decode_page_text
from tilewright.studies.demo.page import (
    flow_label,
    meaning_of,
    page_of,
    phases_note,
    quality_note,
    steps_note,
)


def test_the_page_has_the_figures_of_the_record() -> None:
    record = demo_record()
    page = page_of(record, build_machine(parse_machine("ahbm-small")), ())
    assert page.contexts == record.sizes.contexts
    assert page.flows == tuple(flow_label(flow.flow) for flow in record.flows)
    for flow in record.flows:
        assert page.quality[flow_label(flow.flow)] == flow.quality
        for step in flow.steps:
            shown = page.step(flow_label(flow.flow), step.context)
            assert (shown.attention, shown.speedup) == (step.attention, step.speedup)
    assert "HBM 91 %" in decode_page_text(page)


def test_a_page_without_usages_leaves_that_section_out() -> None:
    page = page_of(demo_record(), build_machine(parse_machine("ahbm-small")), ())
    assert "The machine in use" not in decode_page_text(page)


def with_flow(record: DemoRecord, changed: DemoFlow) -> DemoRecord:
    flows = tuple(changed if flow.flow == changed.flow else flow for flow in record.flows)
    return record.model_copy(update={"flows": flows})


def with_mass(record: DemoRecord, name: str, mass: float) -> DemoRecord:
    flow = next(flow for flow in record.flows if flow.flow == name)
    quality = flow.quality.model_copy(update={"mass": mass})
    return with_flow(record, flow.model_copy(update={"quality": quality}))


def test_the_first_sentence_names_the_fastest_of_the_good_flows_and_the_fastest_of_all() -> None:
    choice, _ = meaning_of(demo_record())
    assert choice == (
        "At 128K tokens a decode step of block-sparse is 12.0 times as fast as dense attention on "
        "ahbm and keeps 95 % of its softmax, with 15 of 16 planted needles found; StreamingLLM is "
        "50.0 times as fast, but keeps 25 % and finds 4 of 16."
    )


def test_a_flow_that_keeps_much_less_than_the_best_is_not_the_choice() -> None:
    choice, _ = meaning_of(with_mass(demo_record(), "block_sparse_attention", 0.91))
    assert choice.startswith("At 128K tokens a decode step of Quest is 9.0 times as fast")


def test_if_the_choice_is_the_fastest_of_all_nothing_else_is_named() -> None:
    choice, _ = meaning_of(with_mass(demo_record(), "streaming_llm", 0.96))
    assert choice.startswith("At 128K tokens a decode step of StreamingLLM is 50.0 times")
    assert "but keeps" not in choice


def test_the_second_sentence_tells_bytes_and_the_stage_that_loses_most() -> None:
    _, limit = meaning_of(demo_record())
    assert limit.startswith("Dense attention gets 90 % of what the HBM gives beside its refresh; ")
    assert "block-sparse moves 12.0 times fewer bytes and turns 67 %" in limit
    assert limit.endswith("into speed, the largest loss being launch (5.24 us).")


@pytest.mark.parametrize("is_reduced", [False, True])
def test_a_demonstration_on_the_python_engine_says_that_its_contexts_are_short(
    is_reduced: bool,
) -> None:
    note = steps_note(demo_record(is_reduced=is_reduced))
    assert ("The Python engine ran, so contexts are short." in note) == is_reduced
    rows = "8 rows on 8 PEs" if is_reduced else "128 rows on 128 PEs"
    assert rows in note


def test_the_note_on_time_says_how_well_means_are_known_and_how_far_single_runs_are_off() -> None:
    def with_phases(step: DemoStep) -> DemoStep:
        first_ps = step.attention.latency_ps
        latencies_ps = (first_ps, first_ps, 2 * first_ps, 2 * first_ps)
        phases = spread_of(
            latencies_ps, interval_ps=3_900_000, refresh_ps=530_000, slices=8, reason="asked"
        )
        attention = step.attention.model_copy(update={"phases": phases})
        return step.model_copy(update={"attention": attention})

    record = demo_record()
    assert "Each at one refresh phase" in phases_note(record)
    flows = tuple(
        flow.model_copy(update={"steps": tuple(map(with_phases, flow.steps))})
        for flow in record.flows
    )
    note = phases_note(record.model_copy(update={"flows": flows}))
    width = 100 * 3.1824 * (1 / 3) ** 0.5 / 4**0.5 / 1.5  # of 1, 1, 2, 2: s is sqrt(1 / 3)
    assert f"means over 4 refresh phases, known to {width:.1f} % or better; " in note
    assert note.endswith("at one phase a step takes 33.3 % less to 33.3 % more.")


def test_the_note_on_quality_says_on_how_many_rows_and_tokens_it_was_measured() -> None:
    assert quality_note(demo_record()).startswith("Quality: 16 rows of 4K tokens")
