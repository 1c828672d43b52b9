"""An example of each op, which the op reference shows and the tests hold."""

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType
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
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    selection,
    unary,
)

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
        "q": row(4, 64, DType.BFLOAT16),
        "k": field(16, 64),
        "v": field(16, 64),
        "centroids": field(1, 64),
        "score": field(1, 1),
        "param.W": parameter(32, 64),
    }
    return Scope(side, EXAMPLE_GEOMETRY, variables)


def row(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.BATCHED, Leading.ONE, (rows, columns), dtype)


def pages(rows: int, columns: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.RAGGED, Leading.PAGES, (rows, columns), dtype)


def field(rows: int, columns: int) -> ValueType:
    return ValueType(FORMAT.PAGED, Leading.PAGES, (rows, columns), DType.BFLOAT16)


def page(rows: int, columns: int) -> ValueType:
    """Keys of the page that is complete, on the cache side."""
    return ValueType(FORMAT.PAGED, Leading.ONE, (rows, columns), DType.BFLOAT16, (1,))


def parameter(*shape: int) -> ValueType:
    return ValueType(FORMAT.PARAMETER, Leading.NONE, shape, DType.FLOAT32)


SCORES = pages(1, 1)
PER_HEAD = pages(1, 4)
WHOLE = pages(1, 1, DType.INT32)
WHOLES = (WHOLE, row(1, 1, DType.INT32))
MASK = pages(1, 1, DType.BOOL)
QUERY = row(4, 64, DType.BFLOAT16)
CENTROIDS = field(1, 64)

OF_FLOATS: list[type[Op]] = [op for op in unary.OPS if issubclass(op, unary.Unary)]

OP_GROUPS: Mapping[str, tuple[Example, ...]] = MappingProxyType(
    {
        "Sources": (
            Example(leaf.Input("q")),
            Example(leaf.FieldRead("centroids")),
            Example(leaf.FieldRead("k"), side=Side.CACHE),
            Example(leaf.StateRead("score")),
            Example(leaf.ParameterRead("param.W")),
            Example(leaf.Constant(0.5)),
        ),
        "Position, age and length": tuple(Example(op()) for op in position.OPS),
        "Feedback from attention": (Example(leaf.AttentionMass()), Example(leaf.PromptMass(32))),
        "Products": (
            Example(linear.GeMM(), (QUERY, CENTROIDS)),
            Example(linear.GeMM(), (QUERY, parameter(32, 64))),
            Example(linear.GeMM(), (QUERY, parameter(4, 32, 64))),
            Example(linear.Kron((1,)), (QUERY, field(2, 64))),
            Example(linear.FactorScore(4, 2, 8), (QUERY, parameter(4, 64, 8), field(8, 8))),
            Example(
                linear.LearnedDescriptor(4, 2, 8),
                (page(16, 64), parameter(4, 16, 2), parameter(4, 64, 8)),
                Side.CACHE,
            ),
        ),
        "Reductions": (
            Example(reduce.Sum(2), (pages(4, 64),)),
            Example(reduce.Mean(1), (page(16, 64),), Side.CACHE),
            Example(reduce.Mean(0), (SCORES,)),
            Example(reduce.Max(2), (PER_HEAD,)),
            Example(reduce.Min(1), (page(16, 64),), Side.CACHE),
            Example(reduce.L2Norm(2), (page(16, 64),), Side.CACHE),
            Example(reduce.ArgMax(0), (SCORES,)),
            Example(reduce.ArgTop(8), (row(1, 64),)),
        ),
        "Reductions of neighbours": tuple(
            Example(op(1, 4), (page(16, 64),), Side.CACHE) for op in reduce.OPS_OF_NEIGHBOURS
        ),
        "Element-wise, two operands": tuple(
            Example(op(), WHOLES if issubclass(op, binary.IntegerBinary) else (QUERY, CENTROIDS))
            for op in binary.OPS
        ),
        "Element-wise, one operand": (
            *(Example(op(), (PER_HEAD,)) for op in OF_FLOATS),
            Example(unary.BitNot(), (WHOLE,)),
            Example(unary.PopCount(), (WHOLE,)),
            Example(unary.Cast(DType.INT32), (SCORES,)),
        ),
        "Comparisons and masks": tuple(Example(op(), (QUERY, CENTROIDS)) for op in compare.OPS),
        "Choice": (
            Example(choose.Select(), (MASK, SCORES, row(1, 1))),
            Example(choose.Gather(2), (CENTROIDS, row(1, 8, DType.INT32))),
            Example(choose.Gather(0), (SCORES, row(1, 1, DType.INT32))),
        ),
        "Layout": (
            Example(layout.Transpose(), (PER_HEAD,)),
            Example(layout.Reshape(2, 2), (PER_HEAD,)),
            Example(layout.MaskSlice(0, 8, 2), (QUERY,)),
            Example(layout.Slice(0, 8, 2), (QUERY,)),
            Example(layout.Concat(2), (SCORES, PER_HEAD)),
            Example(layout.Rope(), (QUERY, row(1, 1, DType.INT32))),
        ),
        "Along the page axis": (
            Example(page_axis.Softmax(0, 0.125), (PER_HEAD,)),
            Example(page_axis.Normalize(), (SCORES,)),
            Example(page_axis.Conv1d((((0.5,),), ((0.25,),))), (SCORES,)),
            Example(page_axis.CumSum(0), (SCORES,)),
            Example(page_axis.PoolPages(page_axis.Kind.MAX, 1, 1), (SCORES,)),
            Example(page_axis.ShiftPages(1), (CENTROIDS,)),
            Example(page_axis.AcrossHeads(), (SCORES,)),
        ),
        "Selections": (
            Example(selection.TopK(), (SCORES,)),
            Example(selection.TopK(8, per_head=True), (PER_HEAD,)),
            Example(selection.ApproxTopK(0.1), (SCORES,)),
            Example(selection.TopP(0.9), (SCORES,)),
            Example(selection.Threshold(0.01), (SCORES,)),
            Example(selection.Union(), (MASK, MASK)),
            Example(selection.Intersection(), (MASK, MASK)),
            Example(selection.Complement(), (MASK,)),
            Example(selection.SelectedTokens(), (MASK,)),
        ),
    }
)
"""Heading of the op reference, and examples of the ops that stand below it."""

EXAMPLES: tuple[Example, ...] = tuple(chain.from_iterable(OP_GROUPS.values()))


def ops_of(examples: Iterable[Example]) -> list[type[Op]]:
    """Return the ops of some examples, in their order."""
    return list(dict.fromkeys(type(example.op) for example in examples))
