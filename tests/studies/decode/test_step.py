"""Dense and sparse steps side by side: what the record says, and what it is checked by."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.attention.machine.pair import graph_of, small_machine
from tilewright.attention.backends.machine import Recorded, RowPlacement, Uniform
from tilewright.attention.graph import DType
from tilewright.attention.planner import PlanSpec, parse_policy
from tilewright.bench.decode import DecodeBenchSpec, run_decode_bench
from tilewright.engine import EngineKind, native_built
from tilewright.machine import build_machine, parse_machine
from tilewright.records.attention.decode import AttentionDecodeRecord
from tilewright.studies.decode.record import Compared, DecodeComparison, compare_with_dense
from tilewright.studies.decode.step import DecodeStep

ENGINE = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE


STEP = DecodeStep(
    machine=small_machine(),
    graph=graph_of("quest", DType.FLOAT16, page_size=16, width=128),
    contexts=(2048, 700),
    kv_heads=2,
    plan=PlanSpec(budget=parse_policy("8")),
    seed=3,
    engine=ENGINE,
)


def compared(**changes: Any) -> Compared:
    """Both steps, with changes to what is simulated."""
    comparison = DecodeComparison(
        step=replace(STEP, **changes),
        machine_source="ahbm-small",
        model="tiny",
        layers=4,
        budget=8,
    )
    return compare_with_dense(comparison, tell=lambda _: None)


@cache
def with_values() -> Compared:
    return compared()


@cache
def without_values() -> Compared:
    return compared(selection=Uniform(3), contexts=(16_384, 9000))


def test_values_are_those_of_the_reference() -> None:
    record = with_values().record
    assert record.values_ok is True
    assert record.ok
    assert record.max_error is not None
    assert record.tolerance is not None
    assert record.max_error <= record.tolerance
    assert record.selection == "scores"


def test_without_values_nothing_is_claimed_about_them() -> None:
    record = without_values().record
    assert record.values_ok is None
    assert record.max_error is None
    assert not record.carries_data
    assert record.selection == "uniform"


def test_a_sparse_step_is_faster_and_never_below_its_bound() -> None:
    record = without_values().record
    assert record.speedup == record.dense.latency_ps / record.sparse.latency_ps > 1
    assert record.speedup < record.bytes_bound_speedup
    for step in (record.dense, record.sparse):
        assert step.latency_ps > step.bound_ps
        assert step.ratio == step.latency_ps / step.bound_ps
        assert 0 < step.hbm_fraction < 1


def test_stages_move_little_more_than_they_must() -> None:
    record = without_values().record
    for step in (record.dense, record.sparse):
        assert step.bytes_ratio is not None
        assert 1.0 <= step.bytes_ratio < 1.1


def test_the_generator_knows_the_bytes_of_its_stages() -> None:
    record = without_values().record
    for step in (record.dense, record.sparse):
        found = {stage.name: stage.bytes for stage in step.stages}
        for name in ("scoring", "attention"):
            if name in found:
                assert abs(step.predicted_bytes[name] - found[name]) < 0.15 * found[name]


@pytest.mark.parametrize("engine", [EngineKind.REFERENCE, ENGINE])
def test_a_simple_memory_counts_the_bytes_of_its_accesses(engine: EngineKind) -> None:
    """Rates decide nothing here: to the burst, the detailed memory moves as many."""
    machine = build_machine(parse_machine("ahbm-small", ["cube.hbm.model=simple"]))
    simple = compared(machine=machine, engine=engine, contexts=(700, 300)).sparse
    detailed = compared(engine=engine, contexts=(700, 300)).sparse
    assert simple.num_bytes <= detailed.num_bytes < 1.1 * simple.num_bytes


def test_tokens_per_second_are_of_all_layers_of_the_model() -> None:
    record = without_values().record
    step_s = record.sparse.latency_ps / 1e12
    assert record.tokens_per_s == pytest.approx(2 / (4 * step_s))


def test_a_recorded_selection_gives_the_time_of_the_step_with_values() -> None:
    saved = with_values().selection()
    again = compared(selection=Recorded(saved.pages, "saved.json")).record
    assert again.sparse.latency_ps == with_values().record.sparse.latency_ps
    assert again.selection_source == "saved.json"


def test_a_record_reads_back_as_it_was_written() -> None:
    record = with_values().record
    again = AttentionDecodeRecord.model_validate_json(record.model_dump_json())
    assert again == record


def test_a_record_whose_stages_do_not_add_up_is_refused() -> None:
    document = with_values().record.model_dump(mode="json")
    document["dense"]["stages"][0]["latency_ps"] += 1
    with pytest.raises(ValueError, match="the stages' latency_ps add up to"):
        AttentionDecodeRecord.model_validate(document, strict=False)


def test_wrong_values_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.studies.decode.record.value_tolerance", lambda _: 0.0)
    record = compared().record
    assert record.values_ok is False
    assert not record.ok


def test_the_sanitizer_is_heard() -> None:
    assert with_values().record.findings is None
    record = compared(sanitize=True, contexts=(40, 33)).record
    assert record.findings == ()
    assert record.ok


def test_a_record_with_findings_is_not_ok() -> None:
    document = with_values().record.model_dump()
    with pytest.raises(ValueError, match="unless values or accesses are wrong"):
        AttentionDecodeRecord.model_validate({**document, "findings": ("a race",)})


@pytest.mark.skipif(not native_built(), reason="the bench wants the compiled core")
def test_the_bench_tells_what_every_change_costs() -> None:
    spec = DecodeBenchSpec(
        machine=small_machine(),
        batch=2,
        kv_heads=2,
        context=1024,
        budget=8,
        ablation_batch=1,
        has_cost=False,
        mla_context=256,
        flows=("quest", "quest_mla"),
    )
    record = run_decode_bench(spec, progress=lambda _: None)
    names = [row.name for row in record.ablation]
    assert names[0] == "as it is"
    assert {f"placement {place}" for place in RowPlacement if place != "head"} < set(names)
    by_name = {row.name: row for row in record.ablation}
    assert by_name["no fusion"].slowdown > 1
    assert by_name["no fusion"].launches > by_name["as it is"].launches
    assert record.flows_compiled == 2
    assert record.passed == (not record.failures)
    assert record.sim_cost is None
