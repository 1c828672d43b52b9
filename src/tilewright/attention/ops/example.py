"""A use of every op, with types: what the op reference shows and the tests hold."""

from collections.abc import Callable
from typing import NamedTuple

from tilewright.attention.graph import (
    FORMAT,
    DType,
    Geometry,
    Leading,
    Op,
    Scope,
    Side,
    Types,
    ValueType,
)
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    feedback,
    interleave,
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    rope,
    selection,
    unary,
)

__all__ = ("EXAMPLES", "EXAMPLE_GEOMETRY", "Example", "example_scope")

EXAMPLE_GEOMETRY = Geometry.gqa(page_size=16, head_dim=64, query_heads=4)


class Example(NamedTuple):
    """An op with operands of these types, on this side."""

    op: Op
    inputs: Types = ()
    side: Side = Side.INDEXER

    def result(self) -> ValueType:
        return self.op.result_type(self.inputs, example_scope(self.side))


def example_scope(side: Side) -> Scope:
    """Variables that the examples read: the query, keys, a field, a state, a parameter."""
    variables = {
        "q": _row(4, 64, DType.BFLOAT16),
        "k": _field(16, 64),
        "v": _field(16, 64),
        "centroids": _field(1, 64),
        "score": _field(1, 1),
        "param.W": _parameter(32, 64),
    }
    return Scope(side, EXAMPLE_GEOMETRY, variables)


def _row(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.BATCHED, Leading.ONE, (rows, columns), dtype)


def _pages(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.RAGGED, Leading.PAGES, (rows, columns), dtype)


def _field(rows: int, columns: int) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, (rows, columns), DType.BFLOAT16)


def _page(rows: int, columns: int) -> ValueType:
    """Keys of the page that is complete, on the cache side."""
    return ValueType(FORMAT.PAGED, Leading.ONE, (rows, columns), DType.BFLOAT16, (1,))


def _parameter(*shape: int) -> ValueType:
    return ValueType(FORMAT.PARAMETER, Leading.NONE, shape, DType.FLOAT32)


_SCORES = _pages(1, 1)
_PER_HEAD = _pages(1, 4)
_WHOLE = _pages(1, 1, DType.INT32)
_MASK = _pages(1, 1, DType.BOOL)
_QUERY = _row(4, 64, DType.BFLOAT16)
_CENTROIDS = _field(1, 64)

_LEAVES = (
    Example(leaf.Input("q")),
    Example(leaf.FieldRead("centroids")),
    Example(leaf.FieldRead("k"), side=Side.CACHE),
    Example(leaf.StateRead("score")),
    Example(leaf.ParameterRead("param.W")),
    Example(leaf.Constant(0.5)),
    *(
        Example(kind())
        for kind in (
            position.PageIndex,
            position.PageAge,
            position.PageCount,
            position.TokenCount,
            position.TokenPosition,
            position.TokenValid,
            position.ReservedPages,
            position.StepIndex,
            position.LayerIndex,
            position.HeadIndex,
            position.QueryHeadIndex,
            feedback.AttentionMass,
        )
    ),
    Example(feedback.PromptMass(32)),
)

_PRODUCTS = (
    Example(linear.GeMM(), (_QUERY, _CENTROIDS)),
    Example(linear.GeMM(), (_QUERY, _parameter(32, 64))),
    Example(linear.GeMM(), (_QUERY, _parameter(4, 32, 64))),
    Example(linear.Kron((1,)), (_QUERY, _field(2, 64))),
    Example(linear.FactorScore(4, 2, 8), (_QUERY, _parameter(4, 64, 8), _field(8, 8))),
    Example(
        linear.LearnedDescriptor(4, 2, 8),
        (_page(16, 64), _parameter(4, 16, 2), _parameter(4, 64, 8)),
        Side.CACHE,
    ),
)

_REDUCTIONS = (
    Example(reduce.Sum(2), (_pages(4, 64),)),
    Example(reduce.Mean(1), (_page(16, 64),), Side.CACHE),
    Example(reduce.Mean(0), (_SCORES,)),
    Example(reduce.Max(2), (_PER_HEAD,)),
    Example(reduce.Min(1), (_page(16, 64),), Side.CACHE),
    Example(reduce.L2Norm(2), (_page(16, 64),), Side.CACHE),
    Example(reduce.ArgMax(0), (_SCORES,)),
    Example(reduce.ArgTop(8), (_row(1, 64),)),
    *(
        Example(kind(1, 4), (_page(16, 64),), Side.CACHE)
        for kind in (
            interleave.SumInterleave,
            interleave.MeanInterleave,
            interleave.MaxInterleave,
            interleave.MinInterleave,
            interleave.L2NormInterleave,
        )
    ),
)

_NUMBERS: tuple[Callable[[], Op], ...] = (
    binary.Add,
    binary.Multiply,
    binary.Maximum,
    binary.Minimum,
    binary.Divide,
    binary.Pow,
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
_INTEGERS: tuple[Callable[[], Op], ...] = (
    binary.FloorDivide,
    binary.Remainder,
    binary.BitAnd,
    binary.BitOr,
    binary.BitXor,
    binary.ShiftLeft,
    binary.ShiftRight,
)
_FUNCTIONS: tuple[Callable[[], Op], ...] = (
    unary.Relu,
    unary.Sigmoid,
    unary.Silu,
    unary.Add_Mul,
    unary.Abs,
    unary.Log,
    unary.Exp,
    unary.Sqrt,
    unary.Rsqrt,
    unary.Sign,
    unary.Floor,
    unary.Clamp,
)

_ELEMENTWISE = (
    *(Example(kind(), (_QUERY, _CENTROIDS)) for kind in _NUMBERS),
    *(Example(kind(), (_WHOLE, _row(1, 1, DType.INT32))) for kind in _INTEGERS),
    *(Example(kind(), (_PER_HEAD,)) for kind in _FUNCTIONS),
    Example(unary.BitNot(), (_WHOLE,)),
    Example(unary.PopCount(), (_WHOLE,)),
    Example(unary.Cast(DType.INT32), (_SCORES,)),
)

_MOVES = (
    Example(choose.Select(), (_MASK, _SCORES, _row(1, 1))),
    Example(choose.Gather(2), (_CENTROIDS, _row(1, 8, DType.INT32))),
    Example(choose.Gather(0), (_SCORES, _row(1, 1, DType.INT32))),
    Example(layout.Transpose(), (_PER_HEAD,)),
    Example(layout.Reshape(2, 2), (_PER_HEAD,)),
    Example(layout.MaskSlice(0, 8, 2), (_QUERY,)),
    Example(layout.Slice(0, 8, 2), (_QUERY,)),
    Example(layout.Concat(2), (_SCORES, _PER_HEAD)),
    Example(rope.Rope(), (_QUERY, _row(1, 1, DType.INT32))),
)

_OVER_PAGES = (
    Example(page_axis.Softmax(0, 0.125), (_PER_HEAD,)),
    Example(page_axis.Normalize(), (_SCORES,)),
    Example(page_axis.Conv1d((((0.5,),), ((0.25,),))), (_SCORES,)),
    Example(page_axis.CumSum(0), (_SCORES,)),
    Example(page_axis.PoolPages(page_axis.Kind.MAX, 1, 1), (_SCORES,)),
    Example(page_axis.ShiftPages(1), (_CENTROIDS,)),
    Example(page_axis.AcrossHeads(), (_SCORES,)),
)

_SELECTIONS = (
    Example(selection.TopK(), (_SCORES,)),
    Example(selection.TopK(8, per_head=True), (_PER_HEAD,)),
    Example(selection.ApproxTopK(0.1), (_SCORES,)),
    Example(selection.TopP(0.9), (_SCORES,)),
    Example(selection.Threshold(0.01), (_SCORES,)),
    Example(selection.Union(), (_MASK, _MASK)),
    Example(selection.Intersection(), (_MASK, _MASK)),
    Example(selection.Complement(), (_MASK,)),
    Example(selection.SelectedTokens(), (_MASK,)),
)

EXAMPLES: tuple[Example, ...] = (
    *_LEAVES,
    *_PRODUCTS,
    *_REDUCTIONS,
    *_ELEMENTWISE,
    *_MOVES,
    *_OVER_PAGES,
    *_SELECTIONS,
)
