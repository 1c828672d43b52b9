"""What ``tilewright generate`` wrote, what its attention read, and its time on machines."""

from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from tilewright.records.attention.decode import LatencySelection, MachineOfSteps, StepFigures
from tilewright.records.attention.run import BytesByKind, PageFigures, PlanFigures, RowCounts
from tilewright.records.document import Document, Seconds, Sha256, Versions


class ModelFigures(Document):
    """The model that ran."""

    name: str
    attention: Literal["gqa", "mla"]
    layers: PositiveInt
    hidden: PositiveInt
    query_heads: PositiveInt
    kv_heads: PositiveInt  # 1 under MLA: one latent for all heads
    parameters: PositiveInt


class DecodePlanFigures(PlanFigures):
    """How many pages a row might read. A row is one KV head of one layer at one step."""

    page_size: PositiveInt
    budget: PositiveInt | None  # pages, reserved ones included; None: every page
    dense_layers: NonNegativeInt  # the first so many layers read every page


class SimulatedLength(Document):
    """One layer's attention of the step that made the sequence so long."""

    tokens: PositiveInt  # the new one included
    latency_ps: PositiveInt | None  # of a layer under the flow
    dense_latency_ps: PositiveInt | None
    selection: LatencySelection | None  # which pages the rows read


class SimulatedAttention(Document):
    """Time of attention on a machine, for a token: layers, times one layer's step.

    ``latency_ps`` is the mean over the first and the last step of the run, each of them dense
    layers x the dense step + other layers x the step under the flow. The rows of a step read the
    pages that the sparse layer in the middle read there.
    """

    machine: MachineOfSteps
    step: StepFigures
    lengths: tuple[SimulatedLength, ...]  # of the first and the last step; of one if they are one
    layers: PositiveInt
    dense_layers: NonNegativeInt  # of them, the first so many
    latency_ps: PositiveInt | None  # a token, all layers
    dense_latency_ps: PositiveInt | None  # were every layer dense
    missing: str | None  # why one of them is not there

    @model_validator(mode="after")
    def _check_missing(self) -> Self:
        if (None in (self.latency_ps, self.dense_latency_ps)) != (self.missing is not None):
            raise ValueError("there are both latencies, or the reason why there are not")
        return self


class GenerateRecord(Document):
    """One text from a prompt, decoded under a flow; the prompt itself is always dense."""

    kind: Literal["generate"] = "generate"
    schema_version: Literal[2] = 2
    versions: Versions
    model: ModelFigures
    flow: str
    graph_hash: Sha256 | None  # None: dense, without a flow
    plan: DecodePlanFigures
    temperature: NonNegativeFloat
    seed: NonNegativeInt
    threads: PositiveInt  # of matrix products
    prompt: str
    text: str
    prompt_tokens: PositiveInt
    tokens: tuple[NonNegativeInt, ...]
    ended: bool  # the model ended the text; else it was cut at the wanted length
    steps: NonNegativeInt  # decode steps: the first token comes from the prompt
    pages: PageFigures
    rows: RowCounts
    num_bytes: BytesByKind
    prompt_seconds: Seconds
    decode_seconds: Seconds
    tokens_per_second: NonNegativeFloat  # decode steps alone; 0 without any
    simulated: tuple[SimulatedAttention, ...]  # of each machine that was named
