"""``tilewright bench decode``: how well a decode step uses a machine, and what simulating costs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.attention.backends.machine import RowPlacement, Uniform, kernels_for
from tilewright.attention.codegen import Cut, Fusion, Selection, Target, compile_graph
from tilewright.attention.flow import registry, trace_flow
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import PlanSpec, parse_policy
from tilewright.engine import EngineKind
from tilewright.errors import CodegenError
from tilewright.machine.build import Machine, machine_hash
from tilewright.records import installed_versions
from tilewright.records.bench import AblationRow, DecodeBenchRecord, DecodeWorkload, SimulationCost
from tilewright.studies.decode.record import attention_figures
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step

LEAST = {
    "speedup_128k": 8.0,
    "fraction_of_bytes_bound": 0.6,
    "dense_hbm_fraction": 0.85,
    "mla_roofline_fraction": 0.85,
}
MOST = {"bytes_ratio_worst": 1.1, "compile_s_worst": 1.0, "cached_s_worst": 0.1}
MOST_COST = {
    "sim_cost.sparse_vs_numpy": 1.0,
    "sim_cost.dense_vs_numpy": 5.0,
    "sim_cost.event_growth": 1.1,
}
"""Limits of figures of the record."""

GROWTH_CONTEXTS = (16_384, 65_536)
MLA_ROWS, MLA_HEADS = 32, 16
DTYPES = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT16)
ALL_FUSIONS = frozenset(Fusion)
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBenchSpec:
    """The step of the headline figures; ablations have ``ablation_batch`` requests of it."""

    machine: Machine
    batch: int = 32
    kv_heads: int = 8
    query_heads: int = 4
    key_dim: int = 128
    page_size: int = 16
    context: int = 131_072
    budget: int = 64
    ablation_batch: int = 4
    cost_batch: int = 16
    cost_context: int = 32_768
    has_cost: bool = True
    mla_context: int = 16_384
    flows: tuple[str, ...] | None = None  # to compile; None: all ready ones
    seed: int = 1
    engine: EngineKind = EngineKind.NATIVE
    phases: int | None = 1  # of refresh; None: by the rule of ADR 0029

    @property
    def geometry(self) -> Geometry:
        return Geometry.gqa(
            page_size=self.page_size, head_dim=self.key_dim, query_heads=self.query_heads, **DTYPES
        )

    def step(self, *, is_dense: bool, batch: int, context: int) -> DecodeStep:
        return DecodeStep(
            machine=self.machine,
            graph=_traced("quest", self.geometry),
            contexts=(context,) * batch,
            kv_heads=self.kv_heads,
            plan=PlanSpec(budget=parse_policy(str(self.budget))),
            is_dense=is_dense,
            selection=None if is_dense else Uniform(self.seed),
            seed=self.seed,
            engine=self.engine,
        )


def run_decode_bench(spec: DecodeBenchSpec, *, progress: Progress) -> DecodeBenchRecord:
    """All figures of one machine, in one run: what simulating costs first, in a young process."""
    cost = _simulation_cost(spec, progress) if spec.has_cost else None
    steps = {}
    for name in ("dense", "sparse"):
        progress(f"{name} step: {spec.batch} requests of {spec.context} tokens")
        step = spec.step(is_dense=name == "dense", batch=spec.batch, context=spec.context)
        steps[name] = simulate_step(step, phases=spec.phases)
    dense, sparse = steps["dense"], steps["sparse"]
    figures = {name: attention_figures(spec.machine, timing) for name, timing in steps.items()}
    speedup = dense.mean_ps / sparse.mean_ps
    progress("dense step under MLA")
    mla = simulate_step(_mla_step(spec), tells_stages=False, phases=spec.phases)
    compiled, cached, worst, count = _compile_times(spec, progress)
    record = DecodeBenchRecord(
        versions=installed_versions(engine=spec.engine.value),
        seed=spec.seed,
        workload=_workload(spec),
        bytes_ratio_worst=max(each.bytes_ratio or 0.0 for each in figures.values()),
        speedup_128k=speedup,
        fraction_of_bytes_bound=speedup * sparse.ideal.total_bytes / dense.ideal.total_bytes,
        dense_hbm_fraction=figures["dense"].hbm_fraction,
        mla_roofline_fraction=max(mla.bound.rates.values()) / mla.mean_ps,
        dense_latency_ps=dense.latency_ps,
        sparse_latency_ps=sparse.latency_ps,
        dense_phases=dense.phases,
        sparse_phases=sparse.phases,
        sim_cost=cost,
        compile_s_worst=compiled,
        compile_flow_worst=worst,
        cached_s_worst=cached,
        flows_compiled=count,
        ablation=tuple(_ablations(spec, progress)),
        passed=True,
        failures=(),
    )
    failures = tuple(_failures(record))
    return record.model_copy(update={"failures": failures, "passed": not failures})


def _traced(name: str, geometry: Geometry) -> Graph:
    return optimize_graph(trace_flow(registry.get(name)(), geometry, name=name))


def _mla_geometry() -> Geometry:
    return Geometry.mla(
        page_size=16, kv_lora_rank=512, qk_rope_head_dim=64, query_heads=MLA_HEADS, **DTYPES
    )


def _mla_step(spec: DecodeBenchSpec) -> DecodeStep:
    """One row for each of some PEs; rows of one PE do not meet those of another."""
    step = spec.step(is_dense=True, batch=MLA_ROWS, context=spec.mla_context)
    return replace(step, graph=_traced("quest_mla", _mla_geometry()), kv_heads=1)


def _ablations(spec: DecodeBenchSpec, progress: Progress) -> Iterator[AblationRow]:
    """The first row is the step as it is; each other one differs in one thing, and from all."""
    whole = spec.step(is_dense=False, batch=spec.ablation_batch, context=spec.context)
    cuts = {
        "no fusion": Cut(),
        "scoring and selection apart": Cut(fusions=ALL_FUSIONS - {Fusion.SCORE_SELECT}),
        "selection in two levels": Cut(fusions=ALL_FUSIONS, selection=Selection.SEGMENTS),
        "selection by digits": Cut(fusions=ALL_FUSIONS, selection=Selection.DIGITS),
        "no hoisting": Cut(fusions=ALL_FUSIONS, hoists=False),
        "no matrix unit for scores": Cut(fusions=ALL_FUSIONS, has_dots=False),
        "no reading ahead": Cut(fusions=ALL_FUSIONS, reads_ahead=False),
    }
    single = replace(whole, contexts=whole.contexts[:1])
    spread = [place for place in RowPlacement if place is not RowPlacement.HEAD]
    variants = {
        "as it is": whole,
        **{name: replace(whole, cut=cut) for name, cut in cuts.items()},
        **{f"placement {place}": replace(whole, placement=place) for place in spread},
        "batch 1": single,
        **{f"batch 1, placement {place}": replace(single, placement=place) for place in spread},
    }
    first: StepTiming | None = None
    seen = set()
    for name, step in variants.items():
        key = (step.contexts, step.placement, step.cut)
        if key in seen:
            continue
        seen.add(key)
        progress(f"ablation: {name}")
        timing = simulate_step(step, tells_stages=False, phases=spec.phases)
        first = first or timing
        yield AblationRow(
            name=name,
            batch=len(step.contexts),
            placement=step.placement.value,
            latency_ps=timing.latency_ps,
            phases=timing.phases,
            bytes=timing.num_bytes,
            launches=len(timing.result.launches),
            slowdown=timing.mean_ps / first.mean_ps,
        )


def _compile_times(spec: DecodeBenchSpec, progress: Progress) -> tuple[float, float, str, int]:
    """Seconds of the slowest flow, anew and from the cache; its name, and how many compile."""
    progress("compiling every ready flow")
    slowest, slowest_cached, name_of, count = 0.0, 0.0, "", 0
    for name in spec.flows or registry.list_keys():
        flow = registry.get(name)()
        geometry = _mla_geometry() if flow.kind is FlowKind.MLA else spec.geometry
        graph = optimize_graph(trace_flow(flow, geometry, name=name))
        target = Target(rows=spec.batch * spec.kv_heads, pages=spec.context // spec.page_size)
        start = process_time()
        try:
            compile_graph(graph, None, target)
        except CodegenError:
            continue
        seconds = process_time() - start
        kernels_for(graph, target)
        start = process_time()
        kernels_for(graph, target)
        slowest_cached = max(slowest_cached, process_time() - start)
        count += 1
        if seconds > slowest:
            slowest, name_of = seconds, name
    return slowest, slowest_cached, name_of, count


def _simulation_cost(spec: DecodeBenchSpec, progress: Progress) -> SimulationCost:
    seconds = {}
    for name in ("sparse", "dense"):
        progress(f"cost of simulating: {name}, {spec.cost_batch} x {spec.cost_context} tokens")
        step = spec.step(is_dense=name == "dense", batch=spec.cost_batch, context=spec.cost_context)
        seconds[name] = simulate_step(step, tells_stages=False).run_s
    numpy_s = _numpy_seconds(spec)
    events = {}
    for name in ("sparse", "dense"):
        progress(f"growth of events: {name}")
        few, many = (
            spec.step(is_dense=name == "dense", batch=1, context=size) for size in GROWTH_CONTEXTS
        )
        timings = [simulate_step(step, tells_stages=False) for step in (few, many)]
        events[name] = (timings[0].num_events, timings[1].num_events)
    ratio = GROWTH_CONTEXTS[1] / GROWTH_CONTEXTS[0]
    growth = {name: many / few / ratio for name, (few, many) in events.items()}
    return SimulationCost(
        batch=spec.cost_batch,
        context=spec.cost_context,
        sparse_vs_numpy=seconds["sparse"] / numpy_s,
        dense_vs_numpy=seconds["dense"] / numpy_s,
        event_growth=growth["dense"],
        sparse_event_growth=growth["sparse"],
        numpy_s=numpy_s,
        sparse_s=seconds["sparse"],
        dense_s=seconds["dense"],
        growth_contexts=GROWTH_CONTEXTS,
        dense_events=events["dense"],
        sparse_events=events["sparse"],
    )


def _numpy_seconds(spec: DecodeBenchSpec) -> float:
    """CPU seconds of dense float32 attention of the step, one row after the other, the best of 3.

    Rows are as many as the step has; they share a few arrays, larger than any cache.
    """
    generator = np.random.default_rng(spec.seed)
    shape = (4, spec.cost_context, spec.key_dim)
    keys, values = (generator.standard_normal(shape, dtype=np.float32) for _ in range(2))
    query = generator.standard_normal((spec.query_heads, spec.key_dim), dtype=np.float32)
    best = float("inf")
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(3):
            start = process_time()
            for row in range(spec.cost_batch * spec.kv_heads):
                logits = query @ keys[row % 4].T * np.float32(spec.key_dim**-0.5)
                weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
                weights /= weights.sum(axis=-1, keepdims=True)
                weights @ values[row % 4]
            best = min(best, process_time() - start)
    return best


def _workload(spec: DecodeBenchSpec) -> DecodeWorkload:
    sizes = ("batch", "kv_heads", "query_heads", "key_dim", "context", "page_size", "budget")
    return DecodeWorkload(
        **{name: getattr(spec, name) for name in sizes},
        dtype=DType.FLOAT16.value,
        machine=spec.machine.spec.name,
        machine_hash=machine_hash(spec.machine.spec),
        selection=Uniform.name,
    )


def _failures(record: DecodeBenchRecord) -> Iterator[str]:
    for name, limit in LEAST.items():
        found = attrgetter(name)(record)
        if found < limit:
            yield f"{name} is {found:.3g}, less than {limit:g}"
    for name, limit in (MOST if record.sim_cost is None else MOST | MOST_COST).items():
        found = attrgetter(name)(record)
        if found > limit:
            yield f"{name} is {found:.3g}, more than {limit:g}"
