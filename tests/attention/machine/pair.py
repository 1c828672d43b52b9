"""One decode step on the reference executor and on a machine, from the same memory."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tilewright.attention.backends.machine import PageOrder, RowPlacement
from tilewright.attention.flow import FlowBase, registry, trace_flow
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import Budget, PlanSpec, Reserved, parse_policy
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import load_machine_document, spec_of
from tilewright.studies.decode.data import ReferenceStep, RequestData, reference_step
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step

Floats = npt.NDArray[np.float32]
TOLERANCE = {DType.FLOAT32: 1e-5, DType.FLOAT16: 2e-3, DType.BFLOAT16: 2e-2}


@cache
def small_machine() -> Machine:
    """Four cubes of four PEs. Small pages of the MMU keep the padding of pieces small."""
    document = load_machine_document("ahbm-small", ("pe.mmu.page_bytes=4 KiB",))
    return build_machine(spec_of(document))


def geometry_of(
    kind: FlowKind, dtype: DType, *, page_size: int = 4, query_heads: int = 2, width: int = 8
) -> Geometry:
    dtypes = {"kv_dtype": dtype, "query_dtype": dtype, "field_dtype": dtype}
    if kind is FlowKind.MLA:
        return Geometry.mla(
            page_size=page_size,
            kv_lora_rank=width - 2,
            qk_rope_head_dim=2,
            query_heads=query_heads,
            **dtypes,
        )
    return Geometry.gqa(page_size=page_size, head_dim=width, query_heads=query_heads, **dtypes)


@cache
def graph_of(name: str, dtype: DType = DType.FLOAT32, **sizes: int) -> Graph:
    flow: FlowBase = registry.get(name)()
    geometry = geometry_of(flow.kind, dtype, **sizes)
    return optimize_graph(trace_flow(flow, geometry, name=name))


def kv_heads_of(graph: Graph) -> int:
    return 1 if graph.geometry.kind is FlowKind.MLA else 2


def exact_requests(
    graph: Graph, contexts: tuple[int, ...], seed: int = 1
) -> tuple[RequestData, ...]:
    """Small whole quarters, whose sums have no rounding: equal selections are promised."""
    geometry, heads = graph.geometry, kv_heads_of(graph)
    generator = np.random.default_rng(seed)

    def drawn(*shape: int) -> Floats:
        return (generator.integers(-8, 9, size=shape) / 4).astype(np.float32)

    has_values = geometry.kind is not FlowKind.MLA
    return tuple(
        RequestData(
            keys=drawn(count, heads, geometry.key_dim),
            values=drawn(count, heads, geometry.value_dim) if has_values else None,
            queries=drawn(count, heads, geometry.query_heads, geometry.key_dim),
            inputs={
                name: drawn(1, heads, *kind.shape) for name, kind in graph.inputs if name != "q"
            },
            needles=(),
            first_query=0,
        )
        for count in contexts
    )


@dataclass(frozen=True, slots=True)
class Pair:
    expected: ReferenceStep
    timing: StepTiming

    @property
    def output(self) -> Floats:
        output: Floats | None = self.timing.result.output
        assert output is not None
        return output

    def check(self, dtype: DType = DType.FLOAT32) -> None:
        """The same pages, and outputs within the tolerance of the type."""
        pages = [found.tolist() for found in self.timing.result.pages]
        assert pages == [found.tolist() for found in self.expected.pages]
        norm = np.linalg.norm(self.expected.output, axis=-1)
        error = np.linalg.norm(self.output - self.expected.output, axis=-1)
        assert float(np.max(error / np.maximum(norm, 1e-6))) < TOLERANCE[dtype]


def plan_of(budget: int | Budget, reserved: Reserved | None = None) -> PlanSpec:
    chosen = parse_policy(str(budget)) if isinstance(budget, int) else budget
    return PlanSpec(budget=chosen, reserved=reserved or Reserved())


def run_pair(
    graph: Graph,
    contexts: tuple[int, ...],
    plan: PlanSpec,
    *,
    placement: RowPlacement = RowPlacement.HEAD,
    requests: tuple[RequestData, ...] | None = None,
    **options: Any,
) -> Pair:
    given = requests or exact_requests(graph, contexts)
    expected = reference_step(graph, given, plan)
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=contexts,
        kv_heads=kv_heads_of(graph),
        plan=plan,
        placement=placement,
        values=expected.values,
        order=PageOrder.SHUFFLED,
        **options,
    )
    return Pair(expected, simulate_step(step, tells_stages=False))
