"""What ``tilewright attention list``, ``check``, ``show`` and ``compile`` find out about flows."""

from typing import Literal

from pydantic import PositiveInt

from tilewright.records.document import Document, Failure, Sha256


class FlowProblem(Failure):
    """An error of a flow, in parts that a program can act on."""

    method: str = ""
    line: str = ""  # file and line
    op: str = ""
    operand: str = ""


class FlowWarning(Document):
    """Something that a flow says without effect."""

    code: str
    line: str
    text: str


class FlowCheckRow(Document):
    """One registered flow."""

    name: str
    kind: Literal["gqa", "mla"]
    ok: bool
    errors: tuple[FlowProblem, ...]
    warnings: tuple[FlowWarning, ...]
    graph_hash: Sha256 | None = None  # of the canonical graph; none if it has errors
    states: tuple[str, ...] = ()
    bytes_per_page: int | None = None  # of keys, values and fields, for each KV head


class AttentionCheckRecord(Document):
    """A flow file whose flows were traced; one that cannot be loaded gets a `FailureRecord`."""

    kind: Literal["attention_check"] = "attention_check"
    schema_version: Literal[1] = 1
    source: str
    ok: bool
    flows: tuple[FlowCheckRow, ...]


class AttentionShowRecord(Document):
    """The graph of one flow."""

    kind: Literal["attention_show"] = "attention_show"
    schema_version: Literal[1] = 1
    source: str
    flow: str
    optimized: bool
    graph_hash: Sha256
    text: str
    svg: str | None = None


class ReadyFlow(Document):
    """A flow that ships."""

    name: str
    family: Literal["gqa", "mla"]
    summary: str


class AttentionListRecord(Document):
    """All ready flows, those for grouped-query attention first."""

    kind: Literal["attention_list"] = "attention_list"
    schema_version: Literal[1] = 1
    flows: tuple[ReadyFlow, ...]


class StageTraffic(Document):
    """Bytes that a stage moves: for a row, for each of its pages, for each page that is read.

    ``head_bytes`` are for each of its pages and each KV head of its request.
    """

    stage: str
    row_bytes: int
    page_bytes: int
    listed_bytes: int
    head_bytes: int


class CompiledKernel(Document):
    """One kernel of the text, in the order of a step."""

    name: str
    grid: str  # what its programs stand for, axis by axis
    stages: tuple[str, ...]
    arguments: tuple[str, ...]
    traffic: tuple[StageTraffic, ...]


class CompiledArray(Document):
    """Memory that a step needs besides its inputs."""

    name: str
    axes: str  # before the inner shape
    shape: tuple[int, ...]
    dtype: str


class Fusion(Document):
    """Two stages in one kernel, or a way to select: why it was taken or not."""

    fusion: str
    predicted_bytes: int  # of a row between the stages, if it is taken
    saved_bytes: int  # that memories need not move, beside what is done if it is not taken
    saved_ps: int  # of a row, with what a launch costs
    reason: str


class FusionDecision(Fusion):
    """Whether stages share a kernel, or a way to select is taken; why, and what a row is spared."""

    accepted: bool


class AttentionCompileRecord(Document):
    """The kernels of a flow with what a launcher must know of them."""

    kind: Literal["attention_compile"] = "attention_compile"
    schema_version: Literal[1] = 1
    source: str
    flow: str
    emit: str
    graph_hash: Sha256
    key: Sha256  # of all that the text depends on
    tiling: dict[str, int]
    merge: str
    completion: CompiledKernel | None
    step: tuple[CompiledKernel, ...]
    scratch: tuple[CompiledArray, ...]
    results: tuple[CompiledArray, ...]
    decisions: tuple[FusionDecision, ...]
    text: str


class TilingTrial(Document):
    """One tiling, and what a row took under it."""

    tiling: dict[str, PositiveInt]
    latency_ps: PositiveInt


class TuningRecord(Document):
    """The first trial is the generator's own choice. ``key``: a hash of what this depends on."""

    kind: Literal["attention_tuning"] = "attention_tuning"
    schema_version: Literal[1] = 1
    key: Sha256
    best: TilingTrial
    trials: tuple[TilingTrial, ...]
