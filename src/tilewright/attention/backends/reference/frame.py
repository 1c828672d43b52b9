"""What an op may look at beside its operands, while a program runs for one request."""

from dataclasses import dataclass, field
from typing import Protocol

from tilewright.attention.backends.reference.counters import Counters
from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.graph import Geometry, Side, Span, ValueType
from tilewright.attention.planner import Reserved, RowBudget


class Sources(Protocol):
    """Where the leaves of a program come from. Results are [heads or 1, pages or 1, r, c]."""

    def input(self, name: str) -> Array: ...
    def field(self, name: str) -> Array: ...
    def state(self, name: str) -> Array: ...
    def parameter(self, name: str) -> Array: ...
    def mass(self) -> Array: ...
    def prompt_mass(self, window: int) -> Array: ...


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
