"""The demonstration at a size of seconds: what it runs and writes, what an interrupt leaves."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.report.perfetto.read_trace import read_trace
from tilewright.engine import EngineKind, native_built
from tilewright.machine.build import Machine, build_machine, machine_hash
from tilewright.machine.node import NodeKind
from tilewright.machine.parse import parse_machine
from tilewright.records.demo import DemoRecord, DemoSizes
from tilewright.report.decode_page.model import DecodePage, ShownUsage
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step
from tilewright.studies.demo import command as demo
from tilewright.studies.demo import steps as demo_steps
from tilewright.studies.demo.command import PAGE_FILE, TRACE_FILE, plan_demo, run_demo
from tilewright.studies.demo.page import flow_label, page_of
from tilewright.studies.demo.steps import DENSE, SHOWN, SPARSE, DemoPlan

SMALL = DemoPlan(
    machine=build_machine(parse_machine("ahbm-small")),
    device="sip:0",
    engine=EngineKind.NATIVE if native_built() else EngineKind.REFERENCE,
    sizes=DemoSizes(
        batch=2,
        kv_heads=2,
        query_heads=2,
        head_dim=32,
        page_size=16,
        dtype="float16",
        budget=8,
        contexts=(512, 1024),
        quality_batch=2,
        quality_context=512,
    ),
    seed=3,
)


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def usages() -> list[ShownUsage]:
    return []


@pytest.fixture(scope="module")
def record(told: list[str], directory: Path, usages: list[ShownUsage]) -> DemoRecord:
    def remembered(record: DemoRecord, machine: Machine, shown: Sequence[ShownUsage]) -> DecodePage:
        usages.extend(shown)
        return page_of(record, machine, shown)

    (directory / PAGE_FILE).write_text("older")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "page_of", remembered)
        return run_demo(SMALL, directory=directory, progress=told.append)


def test_every_flow_has_a_quality_and_a_step_for_each_context_and_dense_comes_first(
    record: DemoRecord,
) -> None:
    assert [flow.flow for flow in record.flows] == [DENSE, *SPARSE]
    for flow in record.flows:
        assert tuple(step.context for step in flow.steps) == SMALL.sizes.contexts
    assert record.machine_hash == machine_hash(SMALL.machine.spec)
    assert (record.seed, record.num_pes) == (3, 4)


def test_what_the_machine_computed_is_right_and_dense_attention_keeps_everything(
    record: DemoRecord,
) -> None:
    assert record.ok
    dense, quest, _, window = record.flows
    assert dense.quality.mass == pytest.approx(1.0)
    assert dense.quality.output_error < 2e-3
    assert dense.quality.needles.found == dense.quality.needles.planted == 4
    assert quest.quality.mass > window.quality.mass
    assert quest.quality.output_error < window.quality.output_error


def test_speed_ups_are_over_dense_attention_at_the_same_context(record: DemoRecord) -> None:
    dense = record.flows[0]
    assert [step.speedup for step in dense.steps] == [1.0, 1.0]
    for flow in record.flows:
        for step, other in zip(flow.steps, dense.steps, strict=True):
            ratio = other.attention.latency_ps / step.attention.latency_ps
            assert step.speedup == pytest.approx(ratio)
            assert step.bytes_bound_speedup >= 1.0


def test_it_says_how_many_steps_there_are_and_each_that_is_done(
    record: DemoRecord, told: list[str]
) -> None:
    del record
    num_steps = 4 * (1 + len(SMALL.sizes.contexts))
    assert told[0] == f"{num_steps} steps, 1 at a time"
    assert told[1] == f"1 of {num_steps} done: dense: 4 rows of 1K tokens"
    assert (
        told[-1]
        == f"{num_steps} of {num_steps} done: StreamingLLM: 4 rows of 512 tokens, with values"
    )
    assert len(told) == 1 + num_steps


def test_several_processes_find_the_same(
    record: DemoRecord, directory: Path, tmp_path: Path
) -> None:
    texts: list[str] = []
    other = run_demo(SMALL, directory=tmp_path, progress=texts.append, num_processes=99)
    assert texts[0] == "12 steps, 12 at a time"
    same = {"page": record.page, "trace": record.trace, "demo_s": record.demo_s}
    assert other.model_copy(update=same) == record
    assert (tmp_path / TRACE_FILE).read_bytes() == (directory / TRACE_FILE).read_bytes()


def test_page_and_trace_are_written_and_an_older_page_is_replaced(
    record: DemoRecord, directory: Path
) -> None:
    assert {file.name for file in directory.iterdir()} == {PAGE_FILE, TRACE_FILE}
    assert (record.page, record.trace) == (
        str(directory / PAGE_FILE),
        str(directory / TRACE_FILE),
    )
    page = ElementTree.parse(directory / PAGE_FILE).getroot()
    said = "".join(page.itertext())
    latencies = [s.attention.latency_ps for flow in record.flows for s in flow.steps]
    assert all(f"{latency_ps:,}" in said for latency_ps in latencies)


def test_the_trace_has_the_launches_and_the_units_of_a_step(
    record: DemoRecord, directory: Path
) -> None:
    trace = read_trace((directory / TRACE_FILE).read_bytes())
    assert record.trace_events > 100
    assert ("host", "launches") in trace.slices
    assert {track for _, track in trace.slices} >= {"cpu", "gemm", "vector"}


def test_an_interrupt_at_the_last_step_leaves_older_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[DecodeStep] = []
    plan = replace(SMALL, sizes=SMALL.sizes.model_copy(update={"contexts": (512,)}))

    def interrupted(step: DecodeStep, **kwargs: object) -> StepTiming:
        steps.append(step)
        if len(steps) == 8:
            raise KeyboardInterrupt
        return simulate_step(step, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(demo_steps, "simulate_step", interrupted)
    for name in (PAGE_FILE, TRACE_FILE):
        (tmp_path / name).write_text("older")
    with pytest.raises(KeyboardInterrupt):
        run_demo(plan, directory=tmp_path, progress=lambda _: None)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["older", "older"]


def test_usages_name_blocks_of_the_machine_and_have_every_memory_that_was_read(
    record: DemoRecord, usages: list[ShownUsage]
) -> None:
    assert [usage.flow for usage in usages] == [flow_label(flow) for flow in SHOWN]
    slices = {node.name for node in SMALL.machine.nodes if node.kind is NodeKind.HBM_CTRL}
    for usage in usages:
        assert usage.context == SMALL.sizes.contexts[-1]
        assert all(0 < share <= 1 for share in usage.shares.values())
        assert len(slices & usage.shares.keys()) == record.num_pes


def test_the_python_engine_gets_shorter_contexts_and_the_rows_of_a_cube() -> None:
    full, reduced = plan_demo(EngineKind.NATIVE), plan_demo(EngineKind.REFERENCE)
    assert (full.is_reduced, reduced.is_reduced) == (False, True)
    assert full.sizes.contexts == (32 * 1024, 128 * 1024)
    assert max(reduced.sizes.contexts) < min(full.sizes.contexts)
    assert reduced.sizes.num_rows == reduced.machine.spec.cube.pes


def test_every_pe_of_a_sip_has_a_row_unless_fewer_requests_are_asked_for() -> None:
    plan = plan_demo(EngineKind.NATIVE)
    assert plan_demo(EngineKind.NATIVE, batch=1).sizes.num_rows == plan.machine.spec.cube.pes
    assert plan.sizes.num_rows == plan.machine.grid.num_cubes_per_sip * plan.machine.spec.cube.pes
