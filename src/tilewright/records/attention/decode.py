"""One decode step of one layer's attention on simulated machines."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from tilewright.records.attention.flow import Fusion
from tilewright.records.attention.run import PlanFigures, RowSizes
from tilewright.records.document import (
    Document,
    Fraction,
    JsonScalar,
    PageNumber,
    Sha256,
    SimulatedDocument,
    Versions,
)
from tilewright.records.phases import Timed
from tilewright.records.run.part import Bottleneck

StageName = Literal["page completion", "scoring", "selection", "attention", "merge", "launch"]
SelectionName = Literal["scores", "uniform", "recent", "recorded"]


class DecodeSizes(RowSizes, PlanFigures):
    """The step: one new token for each request, whose rows are its KV heads."""

    model: str | None  # None: the sizes were given one by one
    layers: PositiveInt  # of the model, for tokens_per_s; the step is of one of them
    batch: PositiveInt
    contexts: tuple[PositiveInt, ...]  # tokens of each request, the new one included
    budget: NonNegativeInt  # pages that a row may read, reserved ones included


class DecodeStage(Document):
    """Part of a step. Latencies add up to that of the step, bytes to those of its memories.

    ``ideal_bytes`` are what the stage must read and write at least; 0: all that it moves is
    between its parts.
    """

    name: StageName
    latency_ps: NonNegativeInt
    bytes: NonNegativeInt  # at the HBM controllers
    ideal_bytes: NonNegativeInt


class FusionRow(Fusion):
    """Two stages in one kernel, or a way to select: whether the generator took it, and why."""

    is_fused: bool


class DecodeAttention(Timed):
    """One way to attend, dense or sparse, and where its time went."""

    latency_ps: PositiveInt  # from the host's submission to its knowing; so are the stages
    stages: tuple[DecodeStage, ...]
    bytes: NonNegativeInt  # at the HBM controllers
    ideal_bytes: NonNegativeInt
    bytes_ratio: NonNegativeFloat | None  # worst of the stages that have ideal bytes
    bound_ps: PositiveInt  # latencies, and what the busiest PE needs at the machine's peak rates
    bound_latency_ps: NonNegativeInt | None = None  # part of it; None: latencies do not count
    bound_resource: str
    ratio: PositiveFloat  # mean latency / bound_ps
    hbm_fraction: NonNegativeFloat  # of the refresh-limited rate of the slices in use
    bottleneck: str  # in words
    bottleneck_figures: Bottleneck | None
    utilisation: dict[str, Fraction] = Field(default_factory=dict)  # the most used blocks
    pages_read: NonNegativeInt  # over all rows
    launches: PositiveInt
    num_events: NonNegativeInt
    tiling: dict[str, JsonScalar]
    fusion: tuple[FusionRow, ...] = ()
    merge: str = "memory"  # through what the parts of divided rows are joined
    predicted_bytes: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """By stage, what the generator expected kernels to move."""
    kernels: tuple[str, ...]
    kernels_hash: Sha256  # of the text

    @property
    def rate_ps(self) -> int:
        """Part of the bound that is work over rates."""
        return self.bound_ps - (self.bound_latency_ps or 0)

    @model_validator(mode="after")
    def _check_stages(self) -> Self:
        for name in ("latency_ps", "bytes"):
            total = sum(getattr(stage, name) for stage in self.stages)
            if total != getattr(self, name):
                found = f"the stages' {name} add up to {total}, but that of the step is"
                raise ValueError(f"{found} {getattr(self, name)}")
        return self


def _derived(figure: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return a field that follows from those before it; documents have it too."""
    return Field(default_factory=figure)


class AttentionDecodeRecord(SimulatedDocument):
    """``stages``, ``bound_ps`` and ``ratio`` are those of the sparse step.

    ``values_ok`` compares outputs and pages with the reference; None: there were no values.
    """

    kind: Literal["attention_decode"] = "attention_decode"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    flow: str
    flow_kind: Literal["gqa", "mla"]
    graph_hash: Sha256
    backend: Literal["machine"] = "machine"
    machine_source: str
    overrides: tuple[str, ...] = ()
    device: str  # which SIPs
    placement: Literal["head", "stripe", "cube", "sip"]
    num_pes: PositiveInt  # that have a part of a row
    carries_data: bool
    selection: SelectionName  # how pages were chosen
    selection_source: str | None = None  # the file of recorded selections
    seed: NonNegativeInt
    sizes: DecodeSizes
    dense: DecodeAttention
    sparse: DecodeAttention
    speedup: PositiveFloat = _derived(
        lambda found: found["dense"].mean_ps / found["sparse"].mean_ps
    )  # mean dense latency / mean sparse latency
    bytes_bound_speedup: PositiveFloat = _derived(
        lambda found: found["dense"].ideal_bytes / found["sparse"].ideal_bytes
    )  # ideal bytes of dense / of sparse
    stages: tuple[DecodeStage, ...] = _derived(lambda found: found["sparse"].stages)
    tokens_per_s: PositiveFloat  # of the sparse step, were attention all that a layer does
    bound_ps: PositiveInt = _derived(lambda found: found["sparse"].bound_ps)
    ratio: PositiveFloat = _derived(lambda found: found["sparse"].ratio)
    values_ok: bool | None
    max_error: NonNegativeFloat | None  # of an output, relative to its norm
    tolerance: NonNegativeFloat | None
    findings: tuple[str, ...] | None = None  # of the sanitizer; None: nobody looked for any
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_sparse(self) -> Self:
        same = (self.stages, self.bound_ps, self.ratio)
        if same != (self.sparse.stages, self.sparse.bound_ps, self.sparse.ratio):
            raise ValueError("stages, bound_ps and ratio must be those of the sparse step")
        if self.carries_data != (self.values_ok is not None):
            raise ValueError("values_ok is there if, and only if, the run carried values")
        if self.ok != (self.values_ok is not False and not self.findings):
            raise ValueError("ok must be true unless values or accesses are wrong")
        return self


class AttentionDecodeSweepRecord(Document):
    """The same step on several machines, side by side."""

    kind: Literal["attention_decode_sweep"] = "attention_decode_sweep"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    ok: bool
    versions: Versions
    rows: tuple[AttentionDecodeRecord, ...]


class SelectionRecord(Document):
    """The pages that each row of a step with values read, for steps without values."""

    kind: Literal["attention_selection"] = "attention_selection"
    schema_version: Literal[1] = 1
    versions: Versions
    flow: str
    graph_hash: Sha256
    page_size: PositiveInt
    contexts: tuple[PositiveInt, ...]
    kv_heads: PositiveInt
    seed: NonNegativeInt
    pages: tuple[tuple[PageNumber, ...], ...]  # by row: a request's KV heads lie together


LatencySelection = Literal["recorded", "uniform", "every page"]
"""Which pages the rows of a simulated step read: those of the measured run, drawn ones, or all."""


class MachineOfSteps(Document):
    """A machine that steps were simulated on."""

    name: str  # as rows call it
    source: str  # a preset, or a file
    overrides: tuple[str, ...]
    machine_hash: Sha256
    refresh_ps: NonNegativeInt
    """Of one refresh of its memory; 0: none. A step has one more or less by when it begins."""


class StepFigures(RowSizes):
    """One layer's attention of one decode step: a new token for each request of a batch.

    From the host's submission of its launches to the host's knowing that they have ended. Tensors
    carry no values, so it is time alone; weights, projections and other layers are not in it.
    """

    layers: Literal[1] = 1
    carries_data: Literal[False] = False
    placement: Literal["head", "stripe", "cube", "sip"]
    batch: PositiveInt  # requests
