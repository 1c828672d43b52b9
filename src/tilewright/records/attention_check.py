"""What ``tilewright attention check``, ``show`` and ``list`` found out about flows."""

from typing import Literal

from tilewright.records.document import Document, Sha256


class FlowProblem(Document):
    """An error of a flow, in parts that a program can act on."""

    type: str
    where: str
    found: str
    expected: str
    fix: str
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
