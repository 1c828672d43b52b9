"""Dense and sparse attention of one decode step side by side, as a record."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256

import numpy as np

from tilewright.attention.backends.machine import (
    RowPlacement,
    SelectionModel,
    check_table_copies,
)
from tilewright.attention.codegen import KernelFile, Tiling
from tilewright.attention.graph import DType, Graph, graph_hash
from tilewright.attention.planner import PlanSpec, Reserved, StateAdvance, parse_policy
from tilewright.engine import EngineKind
from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.records import installed_versions
from tilewright.records.attention.decode import (
    AttentionDecodeRecord,
    DecodeAttention,
    DecodeSizes,
    DecodeStage,
    FusionRow,
    SelectionRecord,
)
from tilewright.records.document import JsonScalar
from tilewright.report.run.format import bottleneck_words
from tilewright.studies.decode.check import value_error
from tilewright.studies.decode.data import draw_requests, reference_step
from tilewright.studies.decode.step import DecodeStep, StepTiming, plan_rows, simulate_step
from tilewright.units import PS_PER_S, PS_PER_US

TOLERANCES = {DType.FLOAT32: 1e-5, DType.FLOAT16: 2e-3}
NARROW_TOLERANCE = 2e-2  # of bfloat16 and of types of a byte and less
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeComparison:
    """What to simulate twice, dense and sparse. Pages count reserved ones."""

    machine: Machine
    machine_source: str
    overrides: tuple[str, ...] = ()
    graph: Graph
    model: str | None = None
    layers: int = 1
    contexts: tuple[int, ...]  # tokens of each request, the new one included
    kv_heads: int
    budget: int
    reserved: Reserved = field(default_factory=Reserved)
    state_advance: StateAdvance = StateAdvance.VORTEX
    placement: RowPlacement = RowPlacement.HEAD
    selection: SelectionModel | None  # None: with values, by scores
    tiling: Tiling | None = None
    device: str = "all"
    seed: int = 0
    engine: EngineKind = EngineKind.REFERENCE
    sanitize: bool = False
    notes: tuple[str, ...] = ()
    phases: int | None = 1  # of refresh; None: by the rule of ADR 0029

    @property
    def plan(self) -> PlanSpec:
        return PlanSpec(
            budget=parse_policy(str(self.budget)),
            reserved=self.reserved,
            state_advance=self.state_advance,
        )

    @property
    def dense_plan(self) -> PlanSpec:
        return PlanSpec(reserved=self.reserved, dense_layers=frozenset({0}))

    @property
    def tolerance(self) -> float:
        return TOLERANCES.get(self.graph.geometry.kv_dtype, NARROW_TOLERANCE)

    def step(self, *, is_dense: bool) -> DecodeStep:
        """Without values."""
        return DecodeStep(
            machine=self.machine,
            graph=self.graph,
            contexts=self.contexts,
            kv_heads=self.kv_heads,
            plan=self.plan,
            placement=self.placement,
            is_dense=is_dense,
            selection=None if is_dense else self.selection,
            tiling=self.tiling,
            device=self.device,
            seed=self.seed,
            engine=self.engine,
            sanitize=self.sanitize,
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """The record of a comparison, and the two steps that it is of."""

    record: AttentionDecodeRecord
    dense: StepTiming
    sparse: StepTiming

    def selection(self) -> SelectionRecord:
        """The pages of the sparse step."""
        record = self.record
        return SelectionRecord(
            versions=record.versions,
            flow=record.flow,
            graph_hash=record.graph_hash,
            page_size=record.sizes.page_size,
            contexts=record.sizes.contexts,
            kv_heads=record.sizes.kv_heads,
            seed=record.seed,
            pages=tuple(tuple(pages.tolist()) for pages in self.sparse.result.pages),
        )


def compare_with_dense(comparison: DecodeComparison, *, tell: Tell) -> Compared:
    """Simulate both; with values, compare both with the reference."""
    dense, sparse = comparison.step(is_dense=True), comparison.step(is_dense=False)
    layout = plan_rows(dense)  # refused now, not when the reference has computed for minutes
    errors: list[float] = []
    if comparison.selection is None:
        check_table_copies(comparison.graph, layout)
        tell("values: prefilling the reference")
        requests = draw_requests(
            comparison.graph,
            comparison.contexts,
            kv_heads=comparison.kv_heads,
            seed=comparison.seed,
        )
        expected = [
            reference_step(comparison.graph, requests, plan, contexts=comparison.contexts)
            for plan in (comparison.dense_plan, comparison.plan)
        ]
        dense = replace(dense, values=expected[0].values)
        sparse = replace(sparse, values=expected[1].values)
    found = []
    for name, step in (("dense", dense), ("sparse", sparse)):
        tell(f"simulating the {name} step on {comparison.machine_source}")
        found.append(simulate_step(step, phases=comparison.phases))
    if comparison.selection is None:
        reserved = comparison.reserved
        errors = [
            value_error(comparison.graph, timing, wanted, reserved)
            for timing, wanted in zip(found, expected, strict=True)
        ]
    return Compared(_record(comparison, found[0], found[1], errors), found[0], found[1])


def _record(
    comparison: DecodeComparison, dense: StepTiming, sparse: StepTiming, errors: list[float]
) -> AttentionDecodeRecord:
    machine, selection = comparison.machine, comparison.selection
    is_right = None if selection is not None else max(errors) <= comparison.tolerance
    dense_figures, sparse_figures = (attention_figures(machine, it) for it in (dense, sparse))
    finite = [error for error in errors if np.isfinite(error)]
    notes = list(comparison.notes)
    if len(finite) < len(errors):
        notes.append("other pages were read than the reference reads, and not for a near tie")
    findings = _findings(dense, sparse)
    step_s = sparse.mean_ps / PS_PER_S * comparison.layers
    return AttentionDecodeRecord(
        ok=is_right is not False and not findings,
        versions=installed_versions(engine=comparison.engine.value),
        flow=comparison.graph.name,
        flow_kind=comparison.graph.geometry.kind.value,
        graph_hash=graph_hash(comparison.graph),
        machine=machine.spec.name,
        machine_source=comparison.machine_source,
        overrides=comparison.overrides,
        machine_hash=machine_hash(machine.spec),
        device=comparison.device,
        placement=comparison.placement.value,
        num_pes=len(sparse.layout.used_pes),
        carries_data=selection is None,
        selection="scores" if selection is None else selection.name,
        selection_source=getattr(selection, "source", None),
        seed=comparison.seed,
        sizes=_sizes(comparison),
        dense=dense_figures,
        sparse=sparse_figures,
        speedup=dense.mean_ps / sparse.mean_ps,
        bytes_bound_speedup=dense.ideal.total_bytes / sparse.ideal.total_bytes,
        stages=sparse_figures.stages,
        tokens_per_s=len(comparison.contexts) / step_s,
        bound_ps=sparse_figures.bound_ps,
        ratio=sparse_figures.ratio,
        values_ok=is_right,
        max_error=max(finite, default=None),
        tolerance=None if selection is not None else comparison.tolerance,
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
    stages = tuple(
        DecodeStage(
            name=stage.name,
            latency_ps=stage.latency_ps,
            bytes=stage.num_bytes,
            ideal_bytes=stage.ideal_bytes,
        )
        for stage in timing.stages
    )
    ratios = [stage.bytes / stage.ideal_bytes for stage in stages if stage.ideal_bytes]
    peak = slice_bytes_per_us(machine.spec) * usable_share(machine.spec.cube.hbm)
    peak_bytes = float(peak * len(timing.layout.used_pes)) * timing.mean_ps / PS_PER_US
    file = timing.kernels
    return DecodeAttention(
        latency_ps=timing.latency_ps,
        phases=timing.phases,
        stages=stages,
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
        num_events=timing.num_events,
        tiling=_tiling(file.tiling),
        fusion=_fusion(file),
        merge=file.merge.value,
        predicted_bytes=_predicted_bytes(timing),
        kernels=tuple(launch.report.name for launch in timing.result.launches),
        kernels_hash=sha256(file.text.encode()).hexdigest(),
    )


def _tiling(tiling: Tiling) -> dict[str, JsonScalar]:
    return {item.name: getattr(tiling, item.name) for item in fields(tiling)}


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
        FusionRow(
            fusion=decision.choice.value,
            is_fused=decision.is_accepted,
            predicted_bytes=decision.num_bytes,
            saved_bytes=decision.saved_bytes,
            saved_ps=decision.saved_ps,
            reason=decision.reason,
        )
        for decision in file.decisions
    )


def _sizes(comparison: DecodeComparison) -> DecodeSizes:
    geometry = comparison.graph.geometry
    return DecodeSizes(
        model=comparison.model,
        layers=comparison.layers,
        batch=len(comparison.contexts),
        contexts=comparison.contexts,
        kv_heads=comparison.kv_heads,
        query_heads=geometry.query_heads,
        key_dim=geometry.key_dim,
        value_dim=geometry.value_dim,
        page_size=geometry.page_size,
        dtype=geometry.kv_dtype.value,
        budget=comparison.budget,
        reserved_first=comparison.reserved.first,
        reserved_last=comparison.reserved.last,
        state_advance=comparison.state_advance.value,
    )
