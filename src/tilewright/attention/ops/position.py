"""Where a page stands: position, age and length as values."""

from typing import ClassVar

from tilewright.attention.graph import DType, Op, Scope, Side, Types, ValueType
from tilewright.attention.ops.rule import INDEXER_ONLY


class _PerPage(Op):
    dtype: ClassVar[DType] = DType.INT32

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_page((1, 1), self.dtype)


class _PerRow(Op):
    sides = INDEXER_ONLY

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_row((1, 1), DType.INT32)


class PageIndex(_PerPage):
    """Logical position of each page in its sequence, from 0: int32 [S, 1, 1]."""


class PageAge(_PerPage):
    """Pages that came after, ``n - 1 - PageIndex``; the newest page has 0. int32 [S, 1, 1]."""

    sides = INDEXER_ONLY


class TokenCount(_PerPage):
    """Tokens in each page: the page size, less in an unfinished last page. int32 [S, 1, 1]."""


class TokenPosition(Op):
    """Position of each token in its sequence, from 0: int32 [S, page size, 1]."""

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_page((scope.geometry.page_size, 1), DType.INT32, (1,))


class TokenValid(Op):
    """Whether each token of a page is there: bool [S, page size, 1]."""

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_page((scope.geometry.page_size, 1), DType.BOOL)


class ReservedPages(_PerPage):
    """Whether a page is one of the reserved first and last pages of the plan: bool [S, 1, 1]."""

    sides = INDEXER_ONLY
    dtype = DType.BOOL


class PageCount(_PerRow):
    """Pages of the row, an unfinished last one included: int32 [1, 1, 1]."""


class StepIndex(_PerRow):
    """Decode steps that the request has made before this one: int32 [1, 1, 1]."""


class LayerIndex(_PerRow):
    """Number of the layer that runs: int32 [1, 1, 1]."""

    sides = frozenset(Side)


class HeadIndex(_PerRow):
    """Number of the row's KV head: int32 [1, 1, 1]."""

    sides = frozenset(Side)


class QueryHeadIndex(Op):
    """Numbers of the row's query heads in the model, ``HeadIndex * H + h``: int32 [1, H, 1]."""

    sides = INDEXER_ONLY

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_row((scope.geometry.query_heads, 1), DType.INT32)


OPS = (
    *(PageIndex, PageAge, PageCount, TokenCount, TokenPosition, TokenValid, ReservedPages),
    *(StepIndex, LayerIndex, HeadIndex, QueryHeadIndex),
)
