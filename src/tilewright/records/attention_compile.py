"""What ``tilewright attention compile`` made of a flow."""

from typing import Literal

from tilewright.records.document import Document, Sha256


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


class FusionDecision(Document):
    """Whether stages share a kernel, or a way to select is taken; why, and what a row is spared."""

    fusion: str
    accepted: bool
    reason: str
    predicted_bytes: int
    saved_bytes: int
    saved_ps: int


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
