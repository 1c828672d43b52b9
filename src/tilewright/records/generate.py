"""What ``tilewright generate`` wrote, and what its attention read."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from tilewright.records.attention_run import BytesByKind, PageFigures, RowCounts
from tilewright.records.document import Document, Seconds, Sha256
from tilewright.records.versions import Versions

__all__ = ("DecodePlanFigures", "GenerateRecord", "ModelFigures")


class ModelFigures(Document):
    """The model that ran."""

    name: str
    attention: Literal["gqa", "mla"]
    layers: PositiveInt
    hidden: PositiveInt
    query_heads: PositiveInt
    kv_heads: PositiveInt  # 1 under MLA: one latent for all heads
    parameters: PositiveInt


class DecodePlanFigures(Document):
    """How many pages a row might read. A row is one KV head of one layer at one step."""

    page_size: PositiveInt
    budget: PositiveInt | None  # pages, reserved ones included; None: every page
    reserved_first: NonNegativeInt
    reserved_last: PositiveInt
    dense_layers: NonNegativeInt  # the first so many layers read every page


class GenerateRecord(Document):
    """One text from a prompt, decoded under a flow; the prompt itself is always dense."""

    kind: Literal["generate"] = "generate"
    schema_version: Literal[1] = 1
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
