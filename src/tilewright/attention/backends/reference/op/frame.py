"""What an op may look at beside its operands, and what it counts, while a program runs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.graph import Geometry, Op, Side, Span, Types, ValueType
from tilewright.attention.planner import Reserved, RowBudget


@dataclass(slots=True)
class ByteCounts:
    """Bytes by kind, as fields are stored; indices and queries are not counted."""

    kv_read: int = 0
    kv_written: int = 0
    summary_read: int = 0
    summary_written: int = 0
    state_read: int = 0
    state_written: int = 0


@dataclass(slots=True)
class Counters:
    """Rows are counted once for each query token, layer and KV head."""

    sparse_rows: int = 0
    dense_rows: Counter[str] = field(default_factory=Counter)  # by reason: skipped, short, fits
    pages_scored: int = 0
    pages_selected: int = 0  # by rows that selected; reserved ones included
    pages_read: int = 0
    nan_scores: int = 0
    reused_selections: int = 0
    num_bytes: ByteCounts = field(default_factory=ByteCounts)


@dataclass(frozen=True, slots=True)
class TokenView:
    """Consecutive pages of a sequence, the last of which may be unfinished."""

    first_page: int
    num_pages: int
    page_size: int
    last_tokens: int  # tokens of the last page, 1 .. page_size

    @property
    def is_full(self) -> bool:
        return self.last_tokens == self.page_size or self.num_pages == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One request, one layer, one step (or some pages that are complete): all its KV heads."""

    namespace: Namespace
    side: Side
    geometry: Geometry
    num_heads: int
    pages: TokenView
    layer: int = 0
    step: int = 0
    reserved: Reserved = field(default_factory=Reserved)
    budgets: tuple[RowBudget, ...] = ()  # of each KV head; indexer side only
    counters: Counters = field(default_factory=Counters)

    @property
    def num_pages(self) -> int:
        return self.pages.num_pages

    def span(self, span: Span) -> range:
        """Pages that an op along the page axis sees."""
        if span == Span.ALL:
            return range(self.num_pages)
        stop = max(self.num_pages - self.reserved.last, 0)
        return range(min(self.reserved.first, stop), stop)

    def token_counts(self) -> Array:
        """Tokens of each page: int32 [1, S, 1, 1]."""
        xp = self.namespace.xp
        counts = xp.full((1, self.num_pages, 1, 1), self.pages.page_size, dtype=xp.int32)
        if self.num_pages:
            counts[:, -1] = self.pages.last_tokens
        return counts

    def token_valid(self) -> Array:
        """Whether each token is there: bool [1, S, page size, 1]."""
        xp = self.namespace.xp
        offsets = xp.reshape(xp.arange(self.pages.page_size, dtype=xp.int32), (1, 1, -1, 1))
        return offsets < self.token_counts()

    def without_missing(self, x: Array, value_type: ValueType, axis: int, fill: float) -> Array:
        """x with ``fill`` at tokens that are not there, if inner axis 1 or 2 runs over tokens."""
        if axis not in value_type.token_axes or self.pages.is_full:
            return x
        xp = self.namespace.xp
        valid = self.token_valid()
        if axis == 2:
            valid = xp.matrix_transpose(valid)
        return xp.where(valid, x, xp.asarray(fill, dtype=x.dtype))


Evaluator: TypeAlias = Callable[..., Array]
"""Called with the frame, the op, the types of the operands, and the operands.

Operands are [heads or 1, pages or 1, r, c] in float32, int32 or bool; so is the result.
"""
EvaluatorTable: TypeAlias = dict[type[Op], Evaluator]


def on_arrays(function: Callable[..., Array]) -> Evaluator:
    """Return the evaluator of an op that looks at its operands alone: (xp, op, *operands)."""

    def evaluate(frame: Frame, op: Any, _types: Types, *operands: Array) -> Array:
        return function(frame.namespace.xp, op, *operands)

    return evaluate
