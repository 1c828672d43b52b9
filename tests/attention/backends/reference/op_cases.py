"""Operands and attributes to try every op with: at least one case for each."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.graph import FORMAT, DType, Leading, Op, Side, Span, ValueType
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    selection,
    unary,
)
from tilewright.attention.ops.page_axis import Kind

PAGE_SIZE = 4
QUERY_HEADS = 3


@dataclass(frozen=True, slots=True)
class Given:
    """One operand: a value per row, per page, or a parameter, and the numbers to fill it with."""

    per: str
    shape: tuple[int, ...]
    kind: str = "float"  # float, whole (floats that tie), positive, int, index:<n>, bool
    token_axes: tuple[int, ...] = ()

    def type(self, side: Side) -> ValueType:
        dtype = {"int": DType.INT32, "bool": DType.BOOL}.get(self.kind, DType.FLOAT32)
        if self.kind.startswith("index"):
            dtype = DType.INT32
        if self.per == "parameter":
            return ValueType(FORMAT.PARAMETER, Leading.NONE, self.shape, dtype)
        if self.per == "row":
            return ValueType(FORMAT.BATCHED, Leading.ONE, self.shape, dtype)
        leading = Leading.PAGES if side is Side.INDEXER else Leading.ONE
        return ValueType(FORMAT.RAGGED, leading, self.shape, dtype, self.token_axes)


@dataclass(frozen=True, slots=True)
class Case:
    op: Op
    operands: tuple[Given, ...] = ()
    side: Side = Side.INDEXER

    @property
    def name(self) -> str:
        return self.op.name


def page(*shape: int, kind: str = "float", tokens: tuple[int, ...] = ()) -> Given:
    return Given("page", shape, kind, tokens)


def row(*shape: int, kind: str = "float") -> Given:
    return Given("row", shape, kind)


def parameter(*shape: int) -> Given:
    return Given("parameter", shape)


TOKENS = page(PAGE_SIZE, 3, tokens=(1,))
ACROSS_TOKENS = page(2, PAGE_SIZE, tokens=(2,))
PLAIN = page(2, 3)

_BINARY = [
    *(op(alpha, beta) for op in (binary.Add,) for alpha, beta in ((1.0, 1.0), (2.0, -1.0))),
    binary.Multiply(),
    binary.Maximum(),
    binary.Minimum(),
    binary.Divide(),
]
_RELATIONS = (
    compare.Equal,
    compare.NotEqual,
    compare.Greater,
    compare.GreaterEqual,
    compare.Less,
    compare.LessEqual,
    compare.WhereEqual,
    compare.WhereNotEqual,
    compare.WhereGreater,
    compare.WhereGreaterEqual,
    compare.WhereLess,
    compare.WhereLessEqual,
)
_INTEGER = (
    binary.FloorDivide,
    binary.Remainder,
    binary.BitAnd,
    binary.BitOr,
    binary.BitXor,
    binary.ShiftLeft,
    binary.ShiftRight,
)
_UNARY = (
    unary.Relu(0.25, -1.0),
    unary.Relu(),
    unary.Sigmoid(0.5, -1.0),
    unary.Sigmoid(),
    unary.Silu(0.5, -1.0),
    unary.Add_Mul(0.5, 2.0),
    unary.Abs(0.5, -2.0),
    unary.Exp(0.5, -1.0),
    unary.Sign(),
    unary.Floor(),
    unary.Clamp(-0.5, 0.25),
)
_REDUCTIONS = (reduce.Sum, reduce.Mean, reduce.Max, reduce.Min, reduce.L2Norm, reduce.ArgMax)
_INTERLEAVED = (
    reduce.SumInterleave,
    reduce.MeanInterleave,
    reduce.MaxInterleave,
    reduce.MinInterleave,
    reduce.L2NormInterleave,
)
_POSITIONS = (
    position.PageIndex(),
    position.PageAge(),
    position.TokenCount(),
    position.TokenPosition(),
    position.TokenValid(),
    position.ReservedPages(),
    position.PageCount(),
    position.StepIndex(),
    position.LayerIndex(),
    position.HeadIndex(),
    position.QueryHeadIndex(),
)
_WEIGHT = (((1.0, 2.0, 0.5),), ((-1.0, 0.25, 3.0),), ((0.5, 0.5, 0.5),))

CASES: tuple[Case, ...] = (
    *(Case(op, (PLAIN, row(1, 3))) for op in _BINARY),
    *(Case(op, (PLAIN, page(2, 1))) for op in _BINARY),
    *(Case(op, (page(2, 1, kind="int"), row(1, 3, kind="int"))) for op in _BINARY),
    Case(binary.Pow(), (page(2, 3, kind="positive"), row(1, 3))),
    *(Case(op(), (page(2, 3, kind="int"), row(1, 3, kind="int"))) for op in _INTEGER),
    *(Case(op(), (page(2, 3, kind="whole"), row(1, 3, kind="whole"))) for op in _RELATIONS),
    *(Case(op, (PLAIN,)) for op in _UNARY),
    *(Case(op, (TOKENS,), Side.CACHE) for op in _UNARY),
    Case(unary.Log(0.5, 2.0), (page(2, 3, kind="positive"),)),
    Case(unary.Sqrt(), (page(2, 3, kind="positive"),)),
    Case(unary.Rsqrt(), (page(2, 3, kind="positive"),)),
    Case(unary.BitNot(), (page(2, 3, kind="int"),)),
    Case(unary.PopCount(), (page(2, 3, kind="int"),)),
    *(Case(unary.Cast(dtype), (PLAIN,)) for dtype in DType),
    *(Case(unary.Cast(dtype), (page(2, 3, kind="bool"),)) for dtype in DType),
    Case(choose.Select(), (page(2, 1, kind="bool"), PLAIN, row(1, 3))),
    Case(choose.Gather(1), (PLAIN, page(4, 1, kind="index:3"))),
    Case(choose.Gather(2), (PLAIN, row(1, 5, kind="index:4"))),
    Case(choose.Gather(0), (PLAIN, page(1, 1, kind="index:9"))),
    *(
        Case(op(dim, span), (given,))
        for op in _REDUCTIONS
        for dim, span, given in (
            (0, Span.MIDDLE, PLAIN),
            (0, Span.ALL, PLAIN),
            (1, Span.MIDDLE, PLAIN),
            (1, Span.MIDDLE, TOKENS),
            (2, Span.MIDDLE, PLAIN),
            (2, Span.MIDDLE, ACROSS_TOKENS),
            (1, Span.MIDDLE, row(2, 3)),
        )
    ),
    *(Case(op(1), (page(2, 3, kind="bool"),)) for op in (reduce.Max, reduce.Min)),
    *(Case(op(1), (TOKENS,), Side.CACHE) for op in _REDUCTIONS),
    Case(reduce.ArgTop(2, 2), (page(2, 3, kind="whole"),)),
    Case(reduce.ArgTop(1, 1), (row(2, 3, kind="whole"),)),
    *(
        Case(op(dim, 2), (given,))
        for op in _INTERLEAVED
        for dim, given in ((1, page(4, 3)), (1, TOKENS), (2, ACROSS_TOKENS))
    ),
    Case(linear.GeMM(), (row(3, 5), page(2, 5))),
    Case(linear.GeMM(), (page(3, 5), row(2, 5))),
    Case(linear.GeMM(), (page(3, 5), page(2, 5))),
    Case(linear.GeMM(), (row(3, 5), row(2, 5))),
    Case(linear.GeMM(), (row(3, 5), page(PAGE_SIZE, 5, tokens=(1,)))),
    Case(linear.GeMM(), (page(3, PAGE_SIZE, tokens=(2,)), page(2, PAGE_SIZE, tokens=(2,)))),
    Case(linear.GeMM(), (page(3, 5, kind="int"), row(2, 5, kind="int"))),
    Case(linear.GeMM(), (row(3, 5), parameter(2, 5))),
    Case(linear.GeMM(), (row(6, 5), parameter(3, 2, 5))),
    Case(linear.GeMM(), (page(3, 5), page(2, 5)), Side.CACHE),
    Case(linear.GeMM(), (page(3, 5), parameter(2, 5)), Side.CACHE),
    Case(linear.Kron((1,)), (page(2, 3), page(4, 3))),
    Case(linear.Kron((1,)), (page(2, 3), row(4, 1))),
    Case(linear.Kron((2,)), (page(2, 3), page(1, 4))),
    Case(linear.Kron((1, 2)), (page(2, 3), row(4, 5))),
    Case(linear.FactorScore(3, 2, 4), (row(3, 5), parameter(3, 5, 4), page(6, 4))),
    Case(
        linear.LearnedDescriptor(2, 3, 4),
        (page(PAGE_SIZE, 5), parameter(2, PAGE_SIZE, 3), parameter(2, 5, 4)),
        Side.CACHE,
    ),
    Case(layout.Transpose(), (PLAIN,)),
    Case(layout.Reshape(3, 2), (PLAIN,)),
    Case(layout.Reshape(1, 6), (row(2, 3),)),
    Case(layout.MaskSlice(1, 2, 1, 2.0, -1.0), (PLAIN,)),
    Case(layout.MaskSlice(0, 2, 2), (PLAIN,)),
    Case(layout.Slice(1, 2, 1), (PLAIN,)),
    Case(layout.Slice(0, 2, 2), (PLAIN,)),
    Case(layout.Concat(2), (PLAIN, row(1, 2), page(2, 1))),
    Case(layout.Concat(1), (PLAIN, row(4, 1))),
    Case(layout.Rope(100.0), (page(2, 6), page(1, 1, kind="int"))),
    Case(layout.Rope(100.0, True), (page(2, 6), row(2, 1, kind="index:7"))),
    *(
        Case(page_axis.Softmax(dim, 1.5, span), (given,))
        for dim, span, given in (
            (0, Span.MIDDLE, PLAIN),
            (0, Span.ALL, PLAIN),
            (1, Span.MIDDLE, TOKENS),
            (2, Span.MIDDLE, PLAIN),
        )
    ),
    Case(page_axis.Normalize(), (PLAIN,)),
    Case(page_axis.Normalize(Span.ALL), (PLAIN,)),
    Case(page_axis.Conv1d(_WEIGHT), (page(1, 3),)),
    Case(page_axis.Conv1d(_WEIGHT, Span.ALL), (page(1, 3),)),
    *(
        Case(page_axis.CumSum(dim, reverse), (PLAIN,))
        for dim in (0, 1, 2)
        for reverse in (False, True)
    ),
    Case(page_axis.CumSum(0, span=Span.ALL), (page(1, 1, kind="int"),)),
    *(Case(page_axis.PoolPages(kind, 1, 2), (PLAIN,)) for kind in Kind),
    *(Case(page_axis.PoolPages(kind, 0, 1, Span.ALL), (PLAIN,)) for kind in Kind),
    Case(page_axis.ShiftPages(2, -1.0), (PLAIN,)),
    Case(page_axis.ShiftPages(-1), (page(1, 1, kind="bool"),)),
    *(Case(page_axis.AcrossHeads(kind), (PLAIN,)) for kind in Kind),
    *(Case(op) for op in _POSITIONS),
    *(
        Case(op, side=Side.CACHE)
        for op in (position.PageIndex(), position.TokenCount(), position.TokenPosition())
    ),
    Case(leaf.Constant(2.5)),
    Case(leaf.Constant(3.0, DType.INT32)),
    Case(selection.TopK(), (page(1, 1, kind="whole"),)),
    Case(selection.TopK(2), (page(1, 1, kind="whole"),)),
    Case(selection.TopK(per_head=True), (page(1, QUERY_HEADS, kind="whole"),)),
    Case(selection.ApproxTopK(0.0), (page(1, 1, kind="whole"),)),
    *(
        Case(selection.TopP(p, least, most, span, per_head), (given,))
        for p, least, most, span, per_head, given in (
            (0.5, 0, None, Span.MIDDLE, False, page(1, 1, kind="positive")),
            (0.9, 1, 3, Span.ALL, False, page(1, 1, kind="positive")),
            (0.7, 0, None, Span.MIDDLE, True, page(1, QUERY_HEADS, kind="whole")),
            (1.0, 0, None, Span.MIDDLE, False, page(1, 1, kind="whole")),
        )
    ),
    *(
        Case(selection.Threshold(value, least, most), (page(1, 1, kind="whole"),))
        for value, least, most in ((1.0, 0, None), (2.0, 2, 3), (-float("inf"), 0, None))
    ),
    Case(selection.Union(), (page(1, 1, kind="bool"), page(1, QUERY_HEADS, kind="bool"))),
    Case(
        selection.Intersection(),
        (page(1, 1, kind="bool"), page(1, 1, kind="bool"), row(1, 1, kind="bool")),
    ),
    Case(selection.Complement(), (page(1, 1, kind="bool"),)),
    Case(selection.SelectedTokens(), (page(1, 1, kind="bool"),)),
    Case(selection.SelectedTokens(), (page(1, QUERY_HEADS, kind="bool"),)),
)


def cases_by_name() -> Mapping[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(case.name, []).append(case)
    return found
