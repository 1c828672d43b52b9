"""The steps of the demonstration: each flow with values, each flow at length, and who looks on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from math import isfinite
from typing import Any, Literal

from tilewright.attention.backends.machine import Recent, SelectionModel, StepValues, Uniform
from tilewright.attention.graph import DType, Geometry, Graph, graph_hash
from tilewright.attention.planner import PlanSpec, Reserved
from tilewright.benches.attention_data import RequestData
from tilewright.device.build import Device
from tilewright.engine import EngineKind
from tilewright.errors import InternalError
from tilewright.machine.build import Machine
from tilewright.records.attention_run import NeedleFigures
from tilewright.records.demo import DemoFlow, DemoQuality, DemoSizes, DemoStep
from tilewright.report.decode_page_view import FlowQuality, ShownUsage, context_text
from tilewright.report.run_usage import most_used
from tilewright.report.trace import TraceRecorder
from tilewright.report.trace_server import ServerTable
from tilewright.serving.model_flow import plan_dense, plan_pages, stand_in_for, trace_for_model
from tilewright.studies.decode_record import attention_figures
from tilewright.studies.decode_step import DecodeStep, StepTiming, simulate_step
from tilewright.studies.decode_step_check import value_error
from tilewright.studies.decode_step_data import ReferenceStep, draw_requests, reference_step
from tilewright.studies.demo_quality import judge_step
from tilewright.studies.demo_words import flow_label
from tilewright.studies.run_listener import Listener, TraceListener

__all__ = ("DENSE", "SHOWN", "SPARSE", "DemoPlan", "DemoRun")

DENSE = "dense"
SPARSE = ("quest", "block_sparse_attention", "streaming_llm")
SHOWN = (DENSE, "quest")  # whose use of the machine is drawn, at the longest context
TRACED = "quest"  # whose step with values has a timeline
TRACE_LIMIT = 200_000  # events of the timeline
TOLERANCE = 2e-3  # of float16, relative to the norm of an output

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What the demonstration runs, and on what."""

    machine: Machine
    device: str
    engine: EngineKind
    sizes: DemoSizes
    seed: int = 1
    is_reduced: bool = False  # shorter contexts, since the Python engine runs

    @property
    def geometry(self) -> Geometry:
        dtype = DType(self.sizes.dtype)
        return Geometry.gqa(
            page_size=self.sizes.page_size,
            head_dim=self.sizes.head_dim,
            query_heads=self.sizes.query_heads,
            kv_dtype=dtype,
            query_dtype=dtype,
            field_dtype=dtype,
        )


class DemoRun:
    """Runs the steps of a plan one after the other; dense attention comes first."""

    def __init__(self, plan: DemoPlan, progress: Progress) -> None:
        self.usages: list[ShownUsage] = []
        self.num_pes = 0  # that had a row in the last step
        self.trace = BytesIO()
        self.num_trace_events = 0
        self._plan = plan
        self._progress = progress
        self._graphs = {flow: _graph(flow, plan.geometry) for flow in (DENSE, *SPARSE)}

    def run(self) -> tuple[DemoFlow, ...]:
        """Every flow with values, then every flow at every context."""
        qualities = {flow: self._quality(flow) for flow in self._graphs}
        steps: dict[str, list[DemoStep]] = {flow: [] for flow in self._graphs}
        for context in self._plan.sizes.contexts:
            timings = {flow: self._time(flow, context) for flow in self._graphs}
            for flow, timing in timings.items():
                steps[flow].append(self._step(flow, context, timing, timings[DENSE]))
        return tuple(
            DemoFlow(
                flow=flow,
                graph_hash=None if flow == DENSE else graph_hash(graph),
                quality=qualities[flow],
                steps=tuple(steps[flow]),
            )
            for flow, graph in self._graphs.items()
        )

    def _decode_step(
        self, flow: str, contexts: tuple[int, ...], values: StepValues | None
    ) -> DecodeStep:
        return DecodeStep(
            machine=self._plan.machine,
            graph=self._graphs[flow],
            contexts=contexts,
            kv_heads=self._plan.sizes.kv_heads,
            plan=_pages(flow, self._plan.sizes.budget),
            is_dense=flow == DENSE,
            selection=None if values is not None else _selection(flow, self._plan.seed),
            values=values,
            device=self._plan.device,
            seed=self._plan.seed,
            engine=self._plan.engine,
        )

    # -- with values -----------------------------------------------------------------------------

    @property
    def _short_contexts(self) -> tuple[int, ...]:
        return (self._plan.sizes.quality_context,) * self._plan.sizes.quality_batch

    @cached_property
    def _requests(self) -> tuple[RequestData, ...]:
        """The same for all flows: none of them asks for more than the query."""
        heads, seed = self._plan.sizes.kv_heads, self._plan.seed
        return draw_requests(self._graphs[DENSE], self._short_contexts, kv_heads=heads, seed=seed)

    def _quality(self, flow: str) -> DemoQuality:
        sizes = self._plan.sizes
        num_rows, length = sizes.quality_batch * sizes.kv_heads, context_text(sizes.quality_context)
        self._progress(f"{flow_label(flow)}: {num_rows} rows of {length} tokens, with values")
        graph, plan = self._graphs[flow], _pages(flow, sizes.budget)
        expected = reference_step(graph, self._requests, plan, contexts=self._short_contexts)
        timing = self._run_with_values(flow, expected)
        error = value_error(graph, timing, expected, plan.reserved)
        kept = self._judge(timing)
        return DemoQuality(
            mass=kept.mass,
            output_error=kept.output_error,
            needles=NeedleFigures(planted=kept.needles_planted, found=kept.needles_found),
            latency_ps=timing.latency_ps,
            values_ok=error <= TOLERANCE,
            max_error=error if isfinite(error) else None,
        )

    def _run_with_values(self, flow: str, expected: ReferenceStep) -> StepTiming:
        step = self._decode_step(flow, self._short_contexts, expected.values)
        if flow != TRACED:
            return simulate_step(step)
        recorders: list[TraceRecorder] = []

        def traced(device: Device) -> tuple[Sequence[Listener], Any]:
            recorders.append(TraceRecorder(device, self.trace, limit=TRACE_LIMIT))
            return [TraceListener(recorders[0])], recorders[0].commands

        timing = simulate_step(step, listeners_of=traced)
        recorders[0].close()
        self.num_trace_events = recorders[0].writer.num_events
        return timing

    def _judge(self, timing: StepTiming) -> FlowQuality:
        geometry, output = self._plan.geometry, timing.result.output
        if output is None:
            raise InternalError("demo", "no output", "that of a step with values", "report this")
        return judge_step(
            self._requests,
            output,
            timing.result.pages,
            page_size=geometry.page_size,
            scale=geometry.key_dim**-0.5,
        )

    # -- without values --------------------------------------------------------------------------

    def _time(self, flow: str, context: int) -> StepTiming:
        sizes = self._plan.sizes
        length = context_text(context)
        self._progress(f"{flow_label(flow)}: {sizes.num_rows} rows of {length} tokens")
        devices: list[Device] = []

        def remembered(device: Device) -> tuple[Sequence[Listener], Any]:
            devices.append(device)
            return (), None

        step = self._decode_step(flow, (context,) * sizes.batch, None)
        timing = simulate_step(step, listeners_of=remembered)
        self.num_pes = len(timing.layout.used_pes)
        if flow in SHOWN and context == sizes.contexts[-1]:
            servers = ServerTable(devices[0])
            used = most_used(*timing.usage, servers, num=len(timing.usage[1].used_ps))
            shares = {block.name: block.share for block in used}
            self.usages.append(ShownUsage(flow_label(flow), context, shares))
        return timing

    def _step(self, flow: str, context: int, timing: StepTiming, dense: StepTiming) -> DemoStep:
        return DemoStep(
            context=context,
            selection=_selection_name(flow),
            speedup=dense.latency_ps / timing.latency_ps,
            bytes_bound_speedup=dense.ideal.total_bytes / timing.ideal.total_bytes,
            attention=attention_figures(self._plan.machine, timing),
        )


def _graph(flow: str, geometry: Geometry) -> Graph:
    name = stand_in_for(geometry.kind) if flow == DENSE else flow
    return trace_for_model(name, geometry)[1]


def _pages(flow: str, budget: int) -> PlanSpec:
    return plan_dense(1, Reserved()) if flow == DENSE else plan_pages(budget, Reserved())


def _selection_name(flow: str) -> Literal["all", "uniform", "recent"]:
    """A window is what StreamingLLM reads; where the scores of others fall nobody knows."""
    match flow:
        case "dense":
            return "all"
        case "streaming_llm":
            return "recent"
        case _:
            return "uniform"


def _selection(flow: str, seed: int) -> SelectionModel | None:
    match _selection_name(flow):
        case "all":
            return None
        case "recent":
            return Recent()
        case "uniform":
            return Uniform(seed)
