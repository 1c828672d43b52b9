"""What a decode step keeps of dense attention, judged by the outputs that it computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.analysis.listener import Listener
from tilewright.analysis.trace.servers import ServerTable
from tilewright.analysis.usage import most_used
from tilewright.attention.backends.machine import Recent, SelectionModel, StepValues, Uniform
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.planner import PlanSpec, Reserved
from tilewright.device.build import Device
from tilewright.engine import EngineKind
from tilewright.errors import InternalError
from tilewright.machine.build import Machine
from tilewright.records.attention.decode import DecodeAttention
from tilewright.records.attention.run import NeedleFigures
from tilewright.records.demo import DemoQuality, DemoSizes
from tilewright.report.decode_page.model import ShownUsage, context_text
from tilewright.report.perfetto.recorder import TraceRecorder
from tilewright.serving.model_flow import plan_dense, plan_pages, stand_in_for, trace_for_model
from tilewright.studies.decode.check import value_error, value_tolerance
from tilewright.studies.decode.data import (
    ReferenceStep,
    RequestData,
    draw_requests,
    reference_step,
    softmax,
)
from tilewright.studies.decode.record import attention_figures
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step
from tilewright.studies.demo.page import flow_label

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.float32]
Pages = Sequence[npt.NDArray[np.int64]]


class KeptAttention(NamedTuple):
    """What outputs keep of dense attention; means over rows and query heads."""

    mass: float  # share of the dense softmax on the pages that were read
    output_error: float  # norm of the difference over the norm of the dense output
    needles: NeedleFigures


def judge_step(
    requests: Sequence[RequestData], output: Array, pages: Pages, *, page_size: int, scale: float
) -> KeptAttention:
    """Compare the one decoded token of every request with dense attention in float64.

    Mass and error are means over all rows and query heads.
    ``output`` is [rows, query heads, value channels] and ``pages`` what each row read; the rows of
    a request are its KV heads.
    """
    masses: list[float] = []
    errors: list[float] = []
    found = planted = row = 0
    for data in requests:
        for head in range(data.keys.shape[1]):
            dense, page_mass = _dense_row(data, head, page_size, scale)
            masses += page_mass[:, pages[row]].sum(axis=-1).tolist()
            difference = np.linalg.norm(output[row] - dense, axis=-1)
            errors += (difference / np.linalg.norm(dense, axis=-1)).tolist()
            mine = data.needle_pages(0, head, page_size)
            planted += len(mine)
            found += int(np.isin(mine, pages[row]).sum())
            row += 1
    mass = min(1.0, float(np.mean(masses)))  # sums of shares may end a last bit above 1
    return KeptAttention(mass, float(np.mean(errors)), NeedleFigures(planted=planted, found=found))


def _dense_row(data: RequestData, head: int, page_size: int, scale: float) -> tuple[Floats, Floats]:
    """Return one row of dense attention in float64, and the mass of each of its pages.

    Both are by query heads.
    """
    query = data.queries[-1, head].astype(np.float64)
    keys = data.keys[:, head].astype(np.float64)
    values = keys if data.values is None else data.values[:, head].astype(np.float64)
    probability = softmax(query @ keys.T * scale)
    starts = np.arange(0, len(keys), page_size)
    return probability @ values, np.add.reduceat(probability, starts, axis=-1)


DENSE = "dense"
SPARSE = ("quest", "block_sparse_attention", "streaming_llm")
SHOWN = (DENSE, "quest")  # whose use of the machine is drawn, at the longest context
TRACED = "quest"  # whose step with values has a timeline
TRACE_LIMIT = 200_000  # events of the timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What the demonstration runs, and on what."""

    machine: Machine
    device: str
    engine: EngineKind
    sizes: DemoSizes
    seed: int = 1
    phases: int | None = 1  # of refresh, of steps without values; None: by the rule of ADR 0029
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


@dataclass(frozen=True, slots=True)
class DemoCase:
    """A step of a flow; without a context it is the short one with values."""

    flow: str
    context: int | None = None


@dataclass(frozen=True, slots=True)
class FoundQuality:
    """What a step with values shows, with its timeline if it was traced."""

    quality: DemoQuality
    trace: bytes
    num_trace_events: int


@dataclass(frozen=True, slots=True)
class FoundTiming:
    """What a step at length shows, with the use of the machine if that is drawn."""

    attention: DecodeAttention
    num_pes: int  # that had a row
    usage: ShownUsage | None


class DemoSteps:
    """Runs the cases of a plan, each by itself."""

    def __init__(self, plan: DemoPlan) -> None:
        self.graphs = {flow: _graph(flow, plan.geometry) for flow in (DENSE, *SPARSE)}
        self._plan = plan

    def cases(self) -> list[DemoCase]:
        """The longest first, so that processes which share them end together."""
        contexts = (*sorted(self._plan.sizes.contexts, reverse=True), None)
        return [DemoCase(flow, context) for context in contexts for flow in self.graphs]

    def name(self, case: DemoCase) -> str:
        """For people."""
        sizes = self._plan.sizes
        num_rows, length, values = sizes.num_rows, case.context, ""
        if length is None:
            num_rows, length = sizes.quality_batch * sizes.kv_heads, sizes.quality_context
            values = ", with values"
        return f"{flow_label(case.flow)}: {num_rows} rows of {context_text(length)} tokens{values}"

    def run(self, case: DemoCase) -> FoundQuality | FoundTiming:
        if case.context is None:
            return self._quality(case.flow)
        return self._time(case.flow, case.context)

    def _decode_step(
        self, flow: str, contexts: tuple[int, ...], values: StepValues | None
    ) -> DecodeStep:
        return DecodeStep(
            machine=self._plan.machine,
            graph=self.graphs[flow],
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

    @property
    def _short_contexts(self) -> tuple[int, ...]:
        return (self._plan.sizes.quality_context,) * self._plan.sizes.quality_batch

    @cached_property
    def _requests(self) -> tuple[RequestData, ...]:
        """The same for all flows: none of them asks for more than the query."""
        heads, seed = self._plan.sizes.kv_heads, self._plan.seed
        return draw_requests(self.graphs[DENSE], self._short_contexts, kv_heads=heads, seed=seed)

    def _quality(self, flow: str) -> FoundQuality:
        graph, plan = self.graphs[flow], _pages(flow, self._plan.sizes.budget)
        expected = reference_step(graph, self._requests, plan)
        trace = BytesIO()
        timing, num_trace_events = self._run_with_values(flow, expected, trace)
        error = value_error(graph, timing, expected, plan.reserved)
        geometry, output = graph.geometry, timing.result.output
        if output is None:
            raise InternalError("demo", "no output", "that of a step with values", "report this")
        size, scale = geometry.page_size, geometry.key_dim**-0.5
        pages = timing.result.pages
        kept = judge_step(self._requests, output, pages, page_size=size, scale=scale)
        quality = DemoQuality(
            **kept._asdict(),
            latency_ps=timing.latency_ps,
            values_ok=error <= value_tolerance(graph),
            max_error=error if isfinite(error) else None,
        )
        return FoundQuality(quality, trace.getvalue(), num_trace_events)

    def _run_with_values(
        self, flow: str, expected: ReferenceStep, trace: BytesIO
    ) -> tuple[StepTiming, int]:
        step = self._decode_step(flow, self._short_contexts, expected.values)
        if flow != TRACED:
            return simulate_step(step), 0
        recorders: list[TraceRecorder] = []

        def traced(device: Device) -> tuple[Sequence[Listener], Any]:
            recorders.append(TraceRecorder(device, trace, limit=TRACE_LIMIT))
            return recorders, recorders[0].commands

        timing = simulate_step(step, listeners_of=traced)
        recorders[0].close()
        return timing, recorders[0].writer.num_events

    def _time(self, flow: str, context: int) -> FoundTiming:
        sizes = self._plan.sizes
        devices: list[Device] = []

        def remembered(device: Device) -> tuple[Sequence[Listener], Any]:
            devices.append(device)
            return (), None

        step = self._decode_step(flow, (context,) * sizes.batch, None)
        timing = simulate_step(step, listeners_of=remembered, phases=self._plan.phases)
        is_shown = flow in SHOWN and context == sizes.contexts[-1]
        return FoundTiming(
            attention_figures(self._plan.machine, timing),
            num_pes=len(timing.layout.used_pes),
            usage=_usage(flow, context, timing, devices[0]) if is_shown else None,
        )


def _usage(flow: str, context: int, timing: StepTiming, device: Device) -> ShownUsage:
    used = most_used(*timing.usage, ServerTable(device), num=len(timing.usage[1].used_ps))
    return ShownUsage(flow_label(flow), context, {block.name: block.share for block in used})


def _graph(flow: str, geometry: Geometry) -> Graph:
    name = stand_in_for(geometry.kind) if flow == DENSE else flow
    return trace_for_model(name, geometry)[1]


def _pages(flow: str, budget: int) -> PlanSpec:
    return plan_dense(1, Reserved()) if flow == DENSE else plan_pages(budget, Reserved())


def selection_name(flow: str) -> Literal["all", "uniform", "recent"]:
    """A window is what StreamingLLM reads; where the scores of others fall nobody knows."""
    if flow == DENSE:
        return "all"
    return "recent" if flow == "streaming_llm" else "uniform"


def _selection(flow: str, seed: int) -> SelectionModel | None:
    models = {"all": None, "recent": Recent(), "uniform": Uniform(seed)}
    return models[selection_name(flow)]
