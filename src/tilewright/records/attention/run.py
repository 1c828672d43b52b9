"""What ``tilewright attention run`` measured on seeded data."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from tilewright.records.document import Document, Fraction, Sha256, StateAdvanceName, Versions


class RowSizes(Document):
    """A row, which is one KV head of a request, with its query heads and widths."""

    kv_heads: PositiveInt  # of a request
    query_heads: PositiveInt  # that share a KV head
    key_dim: PositiveInt
    value_dim: PositiveInt
    page_size: PositiveInt
    dtype: str  # of keys, values, queries and fields


class PlanFigures(Document):
    """Pages that every row reads, and state that steps save."""

    reserved_first: NonNegativeInt
    reserved_last: PositiveInt
    state_advance: StateAdvanceName  # which blocks a Save writes


class TrialSizes(RowSizes, PlanFigures):
    """The data that a flow ran on. Budgets and reserved pages count pages of a row."""

    context: PositiveInt  # tokens of the prompt
    batch: PositiveInt
    steps: PositiveInt
    budget: NonNegativeInt  # pages that a row may read, reserved ones included
    seed: NonNegativeInt


class PageFigures(Document):
    """Pages over all rows and steps."""

    in_rows: NonNegativeInt  # what dense attention reads
    scored: NonNegativeInt
    selected: NonNegativeInt
    read: NonNegativeInt


class MassFigures(Document):
    """Share of the dense softmax that falls on the pages that were read."""

    mean: Fraction
    worst: Fraction  # of all query heads and steps
    against_oracle: Fraction  # mean mass over that of the best pages, as many for each row


class NeedleFigures(Document):
    """Keys that were planted to matter to one step, and those whose page was read."""

    planted: NonNegativeInt
    found: NonNegativeInt


class BytesByKind(Document):
    """Bytes as stored. ``dense_kv_read`` is what dense attention would have read."""

    kv_read: NonNegativeInt
    summary_read: NonNegativeInt
    state_read: NonNegativeInt
    state_written: NonNegativeInt
    kv_written: NonNegativeInt
    summary_written: NonNegativeInt
    dense_kv_read: NonNegativeInt


class RowCounts(Document):
    """Rows by the path they took: one for each step, request and KV head."""

    sparse: NonNegativeInt
    dense: dict[str, NonNegativeInt]  # by reason
    nan_scores: NonNegativeInt


class AttentionRunRecord(Document):
    """One flow on seeded data with planted needles, beside dense attention."""

    kind: Literal["attention_run"] = "attention_run"
    schema_version: Literal[1] = 1
    versions: Versions
    flow: str
    flow_kind: Literal["gqa", "mla"]
    graph_hash: Sha256
    backend: Literal["reference"]
    namespace: Literal["numpy", "torch"]
    sizes: TrialSizes
    pages: PageFigures
    mass: MassFigures
    output_error_mean: NonNegativeFloat  # norm of the difference over the norm of the dense output
    output_error_worst: NonNegativeFloat
    needles: NeedleFigures
    num_bytes: BytesByKind
    rows: RowCounts
    notes: tuple[str, ...] = ()  # what the flow asks for that is without effect
