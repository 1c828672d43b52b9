"""Selections: which pages attention reads. A selection is a bool per page (and query head)."""

import math

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Span, Types, ValueType
from tilewright.attention.ops.rule import (
    INDEXER_ONLY,
    broadcast,
    lifted,
    need_format,
    need_number,
)


class SelectionOp(Op):
    """Turns scores RAGGED [S, 1, 1] into a selection, bool [S, 1, 1].

    Candidates are the pages between the reserved first and last ones; reserved pages are always
    selected. A larger score wins, the lower logical position wins among equals, and NaN counts as
    minus infinity (and is counted). With ``per_head`` scores are [S, 1, H] and every query head
    has a selection of its own.
    """

    operands = ("scores",)
    spans_row = True
    sides = INDEXER_ONLY

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (scores,) = inputs
        need_number(self, "scores", scores)
        need_format(self, "scores", scores, FORMAT.RAGGED)
        per_head = bool(self.attributes().get("per_head", False))
        shape = (1, scope.geometry.query_heads if per_head else 1)
        if scores.shape != shape:
            fix = "reduce over query heads first, or ask for per_head=True"
            if per_head:
                fix = "give one score for each query head, as GeMM(q, centroids) does"
            raise self.refuse("scores", scores, f"inner shape {shape}", fix)
        return scope.per_page(shape, DType.BOOL)


class TopK(SelectionOp):
    """The ``k`` candidates with the largest scores, all if there are no more.

    k None takes the number from the plan: planned pages of the row without the reserved ones.
    """

    k: int | None = None
    per_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            self.check_whole("k", 1)


class ApproxTopK(SelectionOp):
    """Selects what `TopK` with the plan's number selects, whatever ``tolerate_ratio`` is.

    The ratio allows up to so many of the pages to be others: a recall of 1 - ``tolerate_ratio``.
    Every backend selects exactly, with a recall of 1, since none has a faster approximate
    selection; so the ratio changes neither pages nor time, and a check of the flow says so.
    """

    tolerate_ratio: float = 0.0
    per_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio = self.tolerate_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
            raise self.refuse("", f"tolerate_ratio={ratio!r}", "a number from 0 to 1", "change it")


class TopP(SelectionOp):
    """The fewest pages, largest weight first, whose weights add up to at least ``p`` of the total.

    Scores are weights: not negative, as Softmax or Exp give them; a negative one or NaN counts as
    0. With span ``middle`` the total is that of the candidates; with ``all`` reserved pages count
    and come first. At least ``min_pages`` and at most ``max_pages`` candidates are taken (None: no
    limit). p = 1 takes every candidate that ``max_pages`` allows. A total of 0 takes
    ``min_pages``.
    """

    p: float
    min_pages: int = 0
    max_pages: int | None = None
    span: Span = Span.MIDDLE
    per_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.p <= 1.0:
            raise self.refuse("", f"p={self.p!r}", "0 < p <= 1", "change p")
        _check_limits(self)


class Threshold(SelectionOp):
    """Candidates whose score is at least ``value``; minus infinity takes all, also NaN.

    If they are fewer than ``min_pages`` the best others are added; if they are more than
    ``max_pages`` (None: no limit) the best are taken.
    """

    value: float
    min_pages: int = 0
    max_pages: int | None = None
    per_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isnan(self.value):
            raise self.refuse("", "value=nan", "a number", "change the value")
        _check_limits(self)


class _BoolOp(Op):
    operands = ("x", "y...")

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        names = tuple(map(str, range(len(inputs))))
        for operand, value in zip(names, inputs, strict=True):
            if value.dtype is not DType.BOOL:
                raise self.refuse(operand, value, "bools", "compare, or select, first")
        return broadcast(self, inputs, DType.BOOL, names=names)


class Union(_BoolOp):
    """True where any operand is: the union of any number of selections or masks."""


class Intersection(_BoolOp):
    """True where all operands are: the intersection of any number of selections or masks."""


class Complement(Op):
    """True where x is not."""

    operands = ("x",)

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        if x.dtype is not DType.BOOL:
            raise self.refuse("x", x, "bools", "use BitNot for integers, or compare first")
        return lifted(x)


class SelectedTokens(Op):
    """Tokens in the selected pages of a row: int32 BATCHED [1, 1, 1], or [1, 1, H] per head.

    Reserved pages count, as attention reads them.
    """

    operands = ("selection",)
    spans_row = True
    sides = INDEXER_ONLY

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        (selection,) = inputs
        if selection.dtype is not DType.BOOL or selection.format is not FORMAT.RAGGED:
            raise self.refuse("selection", selection, "a selection", "select pages first")
        return scope.per_row(selection.shape, DType.INT32)


def _check_limits(op: "TopP | Threshold") -> None:
    op.check_whole("min_pages", 0)
    if op.max_pages is not None:
        op.check_whole("max_pages", max(op.min_pages, 1))


OPS = (
    *(TopK, ApproxTopK, TopP, Threshold),
    *(Union, Intersection, Complement, SelectedTokens),
)
