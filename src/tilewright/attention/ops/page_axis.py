"""Ops along the page axis, and across the KV heads of a request."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Side, Span, Types, ValueType
from tilewright.attention.ops.example import CENTROIDS, PER_HEAD, SCORES, Example
from tilewright.attention.ops.rule import (
    check_dim,
    check_page_axis,
    check_whole,
    lifted,
    need_float,
    need_format,
    need_number,
    need_rank_two,
    settle_choice,
)

INDEXER_ONLY = frozenset({Side.INDEXER})
Weights = tuple[tuple[tuple[float, ...], ...], ...]


class Kind(StrEnum):
    """Which reduction a pooling op does."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Softmax(Op):
    """``exp(scale * x - max) / sum`` along ``dim``: 0 over pages, 1 over rows, 2 over columns.

    The op object of the indexer takes dim 0 alone, as Vortex's does; ``x.softmax(dim)`` takes any.
    dim 0 takes RAGGED; pages outside ``span`` pass through. Tokens that are not there get 0. If
    all entries are masked (-1e30) the result is uniform; an entry of minus infinity gets 0.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dim: int = 0
    scale: float = 1.0
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        check_dim(self, self.dim, 0, 1, 2)
        settle_choice(self, "span", Span)

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (x,) = inputs
        check_page_axis(self, self.dim, scope)
        need_number(self, "x", x)
        if self.dim == 0:
            need_format(self, "x", x, FORMAT.RAGGED)
        return lifted(x, DType.FLOAT32)


@dataclass(frozen=True, slots=True)
class Normalize(Op):
    """x divided by ``max(sqrt(sum of squares over the pages of span), 1e-12)``, per inner position.

    RAGGED. Pages outside ``span`` pass through.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    spans_row: ClassVar[bool] = True
    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        settle_choice(self, "span", Span)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_float(self, "x", x)
        need_format(self, "x", x, FORMAT.RAGGED)
        return lifted(x)


@dataclass(frozen=True, slots=True)
class Conv1d(Op):
    """Causal and depth-wise over pages: ``out[p] = sum_k weight[k] * x[p - k]``, with zeros before
    the first page of ``span``.

    ``weight`` is [K, r, c] for x RAGGED [S, r, c]; k = 0 is the page itself. Pages outside ``span``
    are not read and pass through.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    spans_row: ClassVar[bool] = True
    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY
    weight: Weights
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        settle_choice(self, "span", Span)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_float(self, "x", x)
        need_format(self, "x", x, FORMAT.RAGGED)
        rows, columns = x.shape
        fits = bool(self.weight) and all(
            len(tap) == rows and all(len(row) == columns for row in tap) for tap in self.weight
        )
        if not fits:
            found = f"a weight of {len(self.weight)} taps that are not all {rows} x {columns}"
            raise self.refuse("", found, f"[K, {rows}, {columns}], as x {x}", "change the weight")
        return lifted(x)


@dataclass(frozen=True, slots=True)
class CumSum(Op):
    """``out[i] = x[0] + ... + x[i]`` along ``dim``; with ``reverse`` from the end.

    dim 0 takes RAGGED and runs over the pages of ``span``; pages outside pass through.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dim: int = 0
    reverse: bool = False
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        check_dim(self, self.dim, 0, 1, 2)
        settle_choice(self, "span", Span)

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (x,) = inputs
        check_page_axis(self, self.dim, scope)
        need_number(self, "x", x)
        if self.dim == 0:
            need_format(self, "x", x, FORMAT.RAGGED)
        return lifted(x)


@dataclass(frozen=True, slots=True)
class PoolPages(Op):
    """Reduction over neighbouring pages: ``out[p] = kind of x[p - before .. p + after]``.

    Only pages of ``span`` are read: at its ends the window is shorter (and a mean divides by less).
    Pages outside ``span`` pass through. x is RAGGED or PAGED.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    spans_row: ClassVar[bool] = True
    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY
    kind: Kind
    before: int = 0
    after: int = 0
    span: Span = Span.MIDDLE

    def __post_init__(self) -> None:
        settle_choice(self, "kind", Kind)
        settle_choice(self, "span", Span)
        check_whole(self, "before", self.before, least=0)
        check_whole(self, "after", self.after, least=0)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        need_format(self, "x", x, FORMAT.RAGGED, FORMAT.PAGED)
        return lifted(x, DType.FLOAT32)


@dataclass(frozen=True, slots=True)
class ShiftPages(Op):
    """The value of another page: ``out[p] = x[p + offset]``, and ``fill`` beyond the ends.

    All pages of the row take part, reserved ones too. x is RAGGED or PAGED. The tokens of another
    page are ordinary entries here; those that are not there are computed from 0.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    spans_row: ClassVar[bool] = True
    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY
    offset: int
    fill: float = 0.0

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_rank_two(self, "x", x)
        need_format(self, "x", x, FORMAT.RAGGED, FORMAT.PAGED)
        return lifted(x).with_shape(*x.shape)


@dataclass(frozen=True, slots=True)
class AcrossHeads(Op):
    """Reduction over the KV heads of one request, so that its rows get one value: same shape.

    With it all KV heads of a request can share a selection.
    """

    operands: ClassVar[tuple[str, ...]] = ("x",)
    spans_row: ClassVar[bool] = True
    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY
    kind: Kind = Kind.SUM

    def __post_init__(self) -> None:
        settle_choice(self, "kind", Kind)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_number(self, "x", x)
        return lifted(x, DType.FLOAT32)


EXAMPLES = (
    Example(Softmax(0, 0.125), (PER_HEAD,)),
    Example(Normalize(), (SCORES,)),
    Example(Conv1d((((0.5,),), ((0.25,),))), (SCORES,)),
    Example(CumSum(0), (SCORES,)),
    Example(PoolPages(Kind.MAX, 1, 1), (SCORES,)),
    Example(ShiftPages(1), (CENTROIDS,)),
    Example(AcrossHeads(), (SCORES,)),
)
