"""The demonstration: what sparse flows keep of dense attention, and what they buy on a machine."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tilewright.attention.graph import graph_hash
from tilewright.engine import EngineKind
from tilewright.machine.build import build_machine, machine_hash
from tilewright.machine.parse import DEFAULT_PRESET, parse_machine
from tilewright.machine.totals import totals_of
from tilewright.processes import in_processes
from tilewright.records import MachineFigures, check_target, installed_versions, write_file
from tilewright.records.demo import DemoFlow, DemoRecord, DemoSizes, DemoStep
from tilewright.report.decode_page.page import write_decode_page
from tilewright.studies.demo.page import page_of
from tilewright.studies.demo.steps import (
    DENSE,
    SHOWN,
    TRACED,
    DemoCase,
    DemoPlan,
    DemoSteps,
    FoundQuality,
    FoundTiming,
    selection_name,
)

PAGE_FILE = "tilewright-demo.html"
TRACE_FILE = "tilewright-demo.pftrace"

# The KV heads and groups of an 8B model; with 16 requests each PE of a SIP has a row.
SIZES = DemoSizes(
    batch=16,
    kv_heads=8,
    query_heads=4,
    head_dim=128,
    page_size=16,
    dtype="float16",
    budget=64,
    contexts=(32 * 1024, 128 * 1024),
    quality_batch=2,
    quality_context=8 * 1024,
)
# What the Python engine simulates in a few minutes: a row for each PE of a cube.
REDUCED = SIZES.model_copy(
    update={
        "batch": 1,
        "contexts": (2 * 1024, 8 * 1024),
        "quality_batch": 1,
        "quality_context": 2 * 1024,
    }
)


def plan_demo(engine: EngineKind, batch: int | None = None, phases: int | None = None) -> DemoPlan:
    """``batch`` requests at length; fewer and shorter ones on the Python engine, if not said."""
    is_reduced = engine is EngineKind.REFERENCE
    sizes = REDUCED if is_reduced else SIZES
    return DemoPlan(
        machine=build_machine(parse_machine(DEFAULT_PRESET)),
        device="sip:0",
        engine=engine,
        sizes=sizes if batch is None else sizes.model_copy(update={"batch": batch}),
        is_reduced=is_reduced,
        phases=phases,
    )


def run_demo(
    plan: DemoPlan,
    *,
    directory: Path,
    progress: Callable[[str], None],
    num_processes: int = 1,
) -> DemoRecord:
    """Run all steps, then write the page and the trace, each whole or not at all."""
    page, trace = directory / PAGE_FILE, directory / TRACE_FILE
    check_target(page, "page")
    check_target(trace, "trace")
    start = time.perf_counter()
    steps, contexts = DemoSteps(plan), plan.sizes.contexts
    qualities, timings = _run_cases(steps, num_processes, progress)
    flows = tuple(
        DemoFlow(
            flow=flow,
            graph_hash=None if flow == DENSE else graph_hash(graph),
            quality=qualities[flow].quality,
            steps=tuple(_step(flow, each, timings) for each in contexts),
        )
        for flow, graph in steps.graphs.items()
    )
    longest = {flow: timings[DemoCase(flow, contexts[-1])] for flow in SHOWN}
    record = DemoRecord.of(
        plan,
        ok=all(flow.quality.values_ok for flow in flows),
        versions=installed_versions(engine=plan.engine.value),
        machine=plan.machine.spec.name,
        machine_hash=machine_hash(plan.machine.spec),
        figures=MachineFigures.of(totals_of(plan.machine)),
        num_pes=longest[DENSE].num_pes,
        flows=flows,
        page=str(page),
        trace=str(trace),
        trace_events=qualities[TRACED].num_trace_events,
        demo_s=time.perf_counter() - start,
    )
    usages = [each.usage for each in longest.values() if each.usage is not None]
    write_decode_page(page, page_of(record, plan.machine, usages))
    write_file(trace, qualities[TRACED].trace, "trace")
    return record


def _run_cases(
    steps: DemoSteps, num_processes: int, progress: Callable[[str], None]
) -> tuple[dict[str, FoundQuality], dict[DemoCase, FoundTiming]]:
    cases = steps.cases()
    qualities: dict[str, FoundQuality] = {}
    timings: dict[DemoCase, FoundTiming] = {}
    progress(f"{len(cases)} steps, {min(num_processes, len(cases))} at a time")
    for number, (case, found) in enumerate(in_processes(steps.run, cases, num_processes), 1):
        if isinstance(found, FoundQuality):
            qualities[case.flow] = found
        else:
            timings[case] = found
        progress(f"{number} of {len(cases)} done: {steps.name(case)}")
    return qualities, timings


def _step(flow: str, context: int, timings: Mapping[DemoCase, FoundTiming]) -> DemoStep:
    attention = timings[DemoCase(flow, context)].attention
    dense = timings[DemoCase(DENSE, context)].attention
    return DemoStep(
        context=context,
        selection=selection_name(flow),
        speedup=dense.figure_ps / attention.figure_ps,
        bytes_bound_speedup=dense.ideal_bytes / attention.ideal_bytes,
        attention=attention,
    )
