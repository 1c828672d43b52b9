"""Ops along the page axis, and across the KV heads of a request."""

from enum import StrEnum

from tilewright.attention.graph import FORMAT, Scope, Span, Types, ValueType
from tilewright.attention.ops.rule import (
    INDEXER_ONLY,
    OneValue,
    need_float,
    need_format,
    need_rank_two,
)

Weights = tuple[tuple[tuple[float, ...], ...], ...]


class Kind(StrEnum):
    """Which reduction a pooling op does."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"


class _AlongAxis(OneValue):
    """A function along one axis: of values per page, if it is the page axis."""

    dims = (0, 1, 2)
    dim: int = 0

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        result = super().infer(inputs, scope)
        if self.dim == 0:
            need_format(self, "x", inputs[0], FORMAT.RAGGED)
        return result


class Softmax(_AlongAxis):
    """``exp(scale * x - max) / sum`` along ``dim``: 0 over pages, 1 over rows, 2 over columns.

    The op object of the indexer takes dim 0 alone, as Vortex's does; ``x.softmax(dim)`` takes any.
    dim 0 takes RAGGED; pages outside ``span`` pass through. Tokens that are not there get 0. If
    all entries are masked (-1e30) the result is uniform; an entry of minus infinity gets 0.
    """

    scale: float = 1.0
    span: Span = Span.MIDDLE


class _OverRow(OneValue):
    spans_row = True
    sides = INDEXER_ONLY


class _OfFloats(_OverRow):
    need = need_float
    formats = (FORMAT.RAGGED,)
    result = None


class Normalize(_OfFloats):
    """x divided by ``max(sqrt(sum of squares over the pages of span), 1e-12)``, per inner position.

    RAGGED. Pages outside ``span`` pass through.
    """

    span: Span = Span.MIDDLE


class Conv1d(_OfFloats):
    """Causal and depth-wise over pages: ``out[p] = sum_k weight[k] * x[p - k]``, with zeros before
    the first page of ``span``.

    ``weight`` is [K, r, c] for x RAGGED [S, r, c]; k = 0 is the page itself. Pages outside ``span``
    are not read and pass through.
    """

    weight: Weights
    span: Span = Span.MIDDLE

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        result = super().infer(inputs, scope)
        (x,) = inputs
        rows, columns = x.shape
        fits = bool(self.weight) and all(
            len(tap) == rows and all(len(row) == columns for row in tap) for tap in self.weight
        )
        if not fits:
            found = f"a weight of {len(self.weight)} taps that are not all {rows} x {columns}"
            raise self.refuse("", found, f"[K, {rows}, {columns}], as x {x}", "change the weight")
        return result


class CumSum(_AlongAxis):
    """``out[i] = x[0] + ... + x[i]`` along ``dim``; with ``reverse`` from the end.

    dim 0 takes RAGGED and runs over the pages of ``span``; pages outside pass through.
    """

    result = None
    reverse: bool = False
    span: Span = Span.MIDDLE


class PoolPages(_OverRow):
    """Reduction over neighbouring pages: ``out[p] = kind of x[p - before .. p + after]``.

    Only pages of ``span`` are read: at its ends the window is shorter (and a mean divides by less).
    Pages outside ``span`` pass through. x is RAGGED or PAGED.
    """

    formats = (FORMAT.RAGGED, FORMAT.PAGED)
    minima = (("before", 0), ("after", 0))
    kind: Kind
    before: int = 0
    after: int = 0
    span: Span = Span.MIDDLE


class ShiftPages(_OverRow):
    """The value of another page: ``out[p] = x[p + offset]``, and ``fill`` beyond the ends.

    All pages of the row take part, reserved ones too. x is RAGGED or PAGED. The tokens of another
    page are ordinary entries here; those that are not there are computed from 0.
    """

    need = need_rank_two
    formats = (FORMAT.RAGGED, FORMAT.PAGED)
    result = None
    offset: int
    fill: float = 0.0

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        return super().infer(inputs, scope).with_shape(*inputs[0].shape)


class AcrossHeads(_OverRow):
    """Reduction over the KV heads of one request, so that its rows get one value: same shape.

    With it all KV heads of a request can share a selection.
    """

    kind: Kind = Kind.SUM


OPS = (Softmax, Normalize, Conv1d, CumSum, PoolPages, ShiftPages, AcrossHeads)
