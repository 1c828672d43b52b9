"""Dense and sparse attention of one decode step side by side, as a record."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256

import numpy as np

from tilewright.attention.backends.machine import check_table_copies
from tilewright.attention.codegen import KernelFile
from tilewright.attention.graph import graph_hash
from tilewright.engine import native_built, resolve_engine
from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.records import installed_versions
from tilewright.records.attention.decode import (
    AttentionDecodeRecord,
    DecodeAttention,
    DecodeSizes,
    FusionRow,
    SelectionRecord,
)
from tilewright.report.format import bottleneck_words
from tilewright.studies.decode.check import value_error, value_tolerance
from tilewright.studies.decode.data import draw_requests, reference_step
from tilewright.studies.decode.step import DecodeStep, StepTiming, plan_rows, simulate_step
from tilewright.units import PS_PER_S, PS_PER_US

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeComparison:
    """A sparse step to simulate beside a dense one, and what its record says besides."""

    step: DecodeStep  # without a selection both have values, and pages are chosen by scores
    machine_source: str
    overrides: tuple[str, ...] = ()
    model: str | None = None
    layers: int = 1
    budget: int  # pages that the step's plan lets a row read
    notes: tuple[str, ...] = ()
    phases: int | None = 1  # of refresh; None: by the rule of ADR 0029


@dataclass(frozen=True, slots=True)
class Compared:
    """The record of a comparison, and the two steps that it is of."""

    record: AttentionDecodeRecord
    dense: StepTiming
    sparse: StepTiming

    def selection(self) -> SelectionRecord:
        """The pages of the sparse step."""
        record = self.record
        return SelectionRecord.of(
            record,
            record.sizes,
            pages=tuple(tuple(pages.tolist()) for pages in self.sparse.result.pages),
        )


def compare_with_dense(comparison: DecodeComparison, *, tell: Tell) -> Compared:
    """Simulate both; with values, compare both with the reference."""
    sparse = comparison.step
    steps = {"dense": replace(sparse, is_dense=True, selection=None), "sparse": sparse}
    layout = plan_rows(sparse)  # refused now, not when the reference has computed for minutes
    expected = {}
    if sparse.selection is None:
        check_table_copies(sparse.graph, layout)
        tell("values: prefilling the reference")
        requests = draw_requests(
            sparse.graph, sparse.contexts, kv_heads=sparse.kv_heads, seed=sparse.seed
        )
        for name, step in steps.items():
            expected[name] = reference_step(step.graph, requests, step.plan_spec)
            steps[name] = replace(step, values=expected[name].values)
    found = {}
    for name, step in steps.items():
        tell(f"simulating the {name} step on {comparison.machine_source}")
        found[name] = simulate_step(step, phases=comparison.phases)
    errors = [
        value_error(sparse.graph, found[name], wanted, sparse.plan.reserved)
        for name, wanted in expected.items()
    ]
    dense = found["dense"]
    return Compared(_record(comparison, dense, found["sparse"], errors), dense, found["sparse"])


def _record(
    comparison: DecodeComparison, dense: StepTiming, sparse: StepTiming, errors: list[float]
) -> AttentionDecodeRecord:
    step, selection = comparison.step, comparison.step.selection
    machine, tolerance = step.machine, value_tolerance(step.graph)
    is_right = None if selection is not None else max(errors) <= tolerance
    finite = [error for error in errors if np.isfinite(error)]
    notes = list(comparison.notes)
    if len(finite) < len(errors):
        notes.append("other pages were read than the reference reads, and not for a near tie")
    findings = _findings(dense, sparse)
    step_s = sparse.mean_ps / PS_PER_S * comparison.layers
    engine = resolve_engine(step.engine, native_built=native_built())
    return AttentionDecodeRecord.of(
        comparison,
        step,
        ok=is_right is not False and not findings,
        versions=installed_versions(engine=engine.value),
        flow=step.graph.name,
        flow_kind=step.graph.geometry.kind.value,
        graph_hash=graph_hash(step.graph),
        machine=machine.spec.name,
        machine_hash=machine_hash(machine.spec),
        placement=step.placement.value,
        num_pes=len(sparse.layout.used_pes),
        carries_data=selection is None,
        selection="scores" if selection is None else selection.name,
        selection_source=getattr(selection, "source", None),
        sizes=_sizes(comparison),
        dense=attention_figures(machine, dense),
        sparse=attention_figures(machine, sparse),
        tokens_per_s=len(step.contexts) / step_s,
        values_ok=is_right,
        max_error=max(finite, default=None),
        tolerance=None if selection is not None else tolerance,
        findings=findings,
        notes=tuple(notes),
    )


def _findings(*timings: StepTiming) -> tuple[str, ...] | None:
    """What the sanitizer found in all of them; None: it did not look on."""
    known = [timing.findings for timing in timings if timing.findings is not None]
    if len(known) < len(timings):
        return None
    return tuple(str(finding) for findings in known for finding in findings)


def attention_figures(machine: Machine, timing: StepTiming) -> DecodeAttention:
    """One step as part of a record."""
    ratios = [stage.bytes / stage.ideal_bytes for stage in timing.stages if stage.ideal_bytes]
    peak = slice_bytes_per_us(machine.spec) * usable_share(machine.spec.cube.hbm)
    peak_bytes = float(peak * len(timing.layout.used_pes)) * timing.mean_ps / PS_PER_US
    file = timing.kernels
    return DecodeAttention.of(
        timing,
        bytes=timing.num_bytes,
        ideal_bytes=timing.ideal.total_bytes,
        bytes_ratio=max(ratios, default=None),
        bound_ps=timing.bound.total_ps,
        bound_latency_ps=timing.bound.latency_ps,
        bound_resource=timing.bound.resource,
        ratio=timing.mean_ps / timing.bound.total_ps,
        hbm_fraction=timing.num_bytes / peak_bytes,
        bottleneck=bottleneck_words(timing.bottleneck),
        bottleneck_figures=timing.bottleneck,
        utilisation={block.name: block.share for block in timing.used},
        pages_read=sum(map(len, timing.result.pages)),
        launches=len(timing.result.launches),
        tiling=asdict(file.tiling),
        fusion=_fusion(file),
        merge=file.merge.value,
        predicted_bytes=_predicted_bytes(timing),
        kernels=tuple(launch.report.name for launch in timing.result.launches),
        kernels_hash=sha256(file.text.encode()).hexdigest(),
    )


def _predicted_bytes(timing: StepTiming) -> dict[str, int]:
    """Over all rows, by their own lengths; a dense step scores no pages."""
    total: Counter[str] = Counter()
    is_dense = not timing.kernels.marks and timing.kernels.completion is None
    heads = timing.layout.num_kv_heads
    for row, read in enumerate(timing.result.pages):
        pages = 0 if is_dense else timing.row_pages[row // heads]
        found = timing.kernels.predicted_bytes(pages=pages, listed=len(read), heads=heads)
        total.update({stage.value: count for stage, count in found.items()})
    return dict(total)


def _fusion(file: KernelFile) -> tuple[FusionRow, ...]:
    return tuple(
        FusionRow.of(
            decision,
            fusion=decision.choice.value,
            is_fused=decision.is_accepted,
            predicted_bytes=decision.num_bytes,
        )
        for decision in file.decisions
    )


def _sizes(comparison: DecodeComparison) -> DecodeSizes:
    step, geometry = comparison.step, comparison.step.graph.geometry
    return DecodeSizes.of(
        comparison,
        step,
        geometry,
        batch=len(step.contexts),
        dtype=geometry.kv_dtype.value,
        reserved_first=step.plan.reserved.first,
        reserved_last=step.plan.reserved.last,
        state_advance=step.plan.state_advance.value,
    )
