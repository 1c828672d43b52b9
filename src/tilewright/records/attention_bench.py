"""The record of the attention benchmark: wall-clock figures, so they differ between runs."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document, Seconds
from tilewright.records.versions import Versions


class AttentionWorkload(Document):
    """What both sides computed: one layer, float32, equal threads."""

    rows: PositiveInt  # requests x KV heads
    context: PositiveInt  # tokens of a row
    page_size: PositiveInt
    head_dim: PositiveInt
    query_heads: PositiveInt
    pages: PositiveInt  # that a sparse row reads
    threads: PositiveInt


class SelectionRow(Document):
    """The cost of selecting at one length."""

    context: PositiveInt
    pages: PositiveInt
    seconds: Seconds


class AttentionBenchRecord(Document):
    """Quest on the reference executor beside dense attention in torch, in one run."""

    kind: Literal["attention-bench"] = "attention-bench"
    schema_version: Literal[1] = 1
    versions: Versions
    torch: str
    seed: NonNegativeInt
    workload: AttentionWorkload
    quest_128k_vs_dense_torch: PositiveFloat  # dense seconds / sparse seconds
    growth: PositiveFloat  # of a page's selection cost, from a quarter of the context to all of it
    sparse_seconds: Seconds
    sdpa_seconds: Seconds
    matmul_seconds: Seconds
    selection: tuple[SelectionRow, ...]
    dense_error: NonNegativeFloat  # of the executor's dense attention against torch, relative
    passed: bool
