"""What the demonstration found: quality of flows on values, time of flows at length."""

from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from tilewright.records.attention.decode import DecodeAttention
from tilewright.records.attention.run import NeedleFigures
from tilewright.records.document import Document, Fraction, Seconds, Sha256, SimulatedDocument
from tilewright.records.machine import MachineFigures


class DemoSizes(Document):
    """One layer's attention of one new token a request; a row is a request's KV head."""

    batch: PositiveInt
    kv_heads: PositiveInt
    query_heads: PositiveInt  # that share a KV head
    head_dim: PositiveInt
    page_size: PositiveInt
    dtype: str
    budget: PositiveInt  # pages that a row of a sparse flow may read, reserved ones included
    contexts: tuple[PositiveInt, ...]  # of the steps without values, the shortest first
    quality_batch: PositiveInt
    quality_context: PositiveInt  # of the steps with values

    @property
    def num_rows(self) -> int:
        return self.batch * self.kv_heads


class DemoQuality(Document):
    """What a flow keeps of dense attention, by the outputs of a step that carried values."""

    mass: Fraction  # share of the dense softmax on the pages that were read
    output_error: NonNegativeFloat  # norm of the difference over the norm of the dense output
    needles: NeedleFigures
    latency_ps: PositiveInt  # of that step
    values_ok: bool  # outputs and pages are those of the reference executor
    max_error: NonNegativeFloat | None  # of an output, so compared; None: other pages were read


class DemoStep(Document):
    """A flow at a context, timing only."""

    context: PositiveInt
    selection: Literal["all", "uniform", "recent"]  # which pages a row reads
    speedup: PositiveFloat  # over dense attention at the same context
    bytes_bound_speedup: PositiveFloat  # ideal bytes of dense attention over those of this step
    attention: DecodeAttention


class DemoFlow(Document):
    """One row of the table."""

    flow: str
    graph_hash: Sha256 | None  # None: dense attention has no graph
    quality: DemoQuality
    steps: tuple[DemoStep, ...]  # in the order of ``DemoSizes.contexts``


class DemoRecord(SimulatedDocument):
    """Dense attention first. ``ok``: what was computed is right wherever it was computed."""

    kind: Literal["demo"] = "demo"
    schema_version: Literal[3, 4] = 4  # 3: without phases
    figures: MachineFigures
    device: str
    num_pes: PositiveInt  # that had a row in the steps without values
    is_reduced: bool  # shorter contexts, since the Python engine ran
    seed: NonNegativeInt
    sizes: DemoSizes
    flows: tuple[DemoFlow, ...]
    page: str | None  # the HTML file that was written
    trace: str | None  # the Perfetto file that was written
    trace_events: NonNegativeInt
    demo_s: Seconds  # of wall time

    @model_validator(mode="after")
    def _check_flows(self) -> Self:
        for flow in self.flows:
            if tuple(step.context for step in flow.steps) != self.sizes.contexts:
                raise ValueError(f"the steps of {flow.flow!r} are not those of sizes.contexts")
        if self.ok != all(flow.quality.values_ok for flow in self.flows):
            raise ValueError("ok must be true if, and only if, all values are right")
        return self
