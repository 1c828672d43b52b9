"""Values of single ops: what the kernel of complete pages writes, beside the reference.

Every op stands in one table; pages and keys have sizes that are powers of two, and then others.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.attention.triton.pair import Fields, Rows, geometry_of, graph_of, run_completion
from tilewright.attention.flow import registry
from tilewright.attention.graph import (
    FORMAT,
    DType,
    Field,
    FieldWrite,
    FlowKind,
    Graph,
    Leading,
    Node,
    Op,
    Parameter,
    Scope,
    Side,
    ValueType,
    make_node,
    verify_graph,
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
from tilewright.attention.planner import DefaultBudget

SIZES = ({"page_size": 4, "width": 8}, {"page_size": 6, "width": 10})

OF_FLOATS: Mapping[str, Op] = {
    "relu": unary.Relu(0.25, -0.5),
    "sigmoid": unary.Sigmoid(0.5, -1.0),
    "silu": unary.Silu(0.0, -1.0),
    "add_mul": unary.Add_Mul(0.5, 2.0),
    "abs": unary.Abs(-0.25, 1.0),
    "log": unary.Log(9.0, 1.0),
    "exp": unary.Exp(0.0, 0.5),
    "sign": unary.Sign(),
    "floor": unary.Floor(),
    "clamp": unary.Clamp(-0.5, 1.0),
    "half": unary.Cast(DType.FLOAT16),
    "e4m3": unary.Cast(DType.FLOAT8_E4M3),
    "e5m2": unary.Cast(DType.FLOAT8_E5M2),
    "to_int8": unary.Cast(DType.INT8),
    "to_int4": unary.Cast(DType.INT4),
    "sum_rows": reduce.Sum(1),
    "sum_columns": reduce.Sum(2),
    "mean": reduce.Mean(1),
    "max": reduce.Max(2),
    "min": reduce.Min(1),
    "norm": reduce.L2Norm(2),
    "arg_max_rows": reduce.ArgMax(1),
    "arg_max": reduce.ArgMax(2),
    "arg_top_rows": reduce.ArgTop(3, 1),
    "arg_top": reduce.ArgTop(5, 2),
    "sum_pairs": reduce.SumInterleave(1, 2),
    "mean_pairs": reduce.MeanInterleave(2, 2),
    "max_pairs": reduce.MaxInterleave(2, 2),
    "min_pairs": reduce.MinInterleave(1, 2),
    "norm_pairs": reduce.L2NormInterleave(2, 2),
    "turned": layout.Transpose(),
    "part": layout.Slice(3, 6, 2),
    "masked": layout.MaskSlice(1, 3, 1, 2.0, -1.0),
    "softmax_rows": page_axis.Softmax(1, 0.5),
    "softmax_columns": page_axis.Softmax(2, -1.0),
    "sums_of_rows": page_axis.CumSum(1),
    "sums_from_the_end": page_axis.CumSum(2, reverse=True),
}
OF_TWO_FLOATS: Mapping[str, Op] = {
    "add": binary.Add(2.0, -0.5),
    "multiply": binary.Multiply(),
    "maximum": binary.Maximum(),
    "minimum": binary.Minimum(),
    "product": linear.GeMM(),
    "mask_less": compare.WhereLess(),
    "mask_less_equal": compare.WhereLessEqual(),
    "mask_equal": compare.WhereEqual(),
    "mask_not_equal": compare.WhereNotEqual(),
    "mask_greater": compare.WhereGreater(),
    "mask_greater_equal": compare.WhereGreaterEqual(),
    "joined_rows": layout.Concat(1),
    "joined_columns": layout.Concat(2),
    "kron_rows": linear.Kron((1,)),
    "kron_columns": linear.Kron((2,)),
}
OF_TWO_INTEGERS: Mapping[str, Op] = {
    "int_add": binary.Add(3.0, -1.0),
    "floor_divide": binary.FloorDivide(),
    "remainder": binary.Remainder(),
    "bit_and": binary.BitAnd(),
    "bit_or": binary.BitOr(),
    "bit_xor": binary.BitXor(),
    "shift_left": binary.ShiftLeft(),
    "shift_right": binary.ShiftRight(),
    "int_product": linear.GeMM(),
    "int_divide": binary.Divide(),
    "int_kron": linear.Kron((1, 2)),
}
OF_INTEGERS: Mapping[str, Op] = {
    "bit_not": unary.BitNot(),
    "pop_count": unary.PopCount(),
    "int_arg_top": reduce.ArgTop(2, 2),
    "int_sums": page_axis.CumSum(1),
    "int_sum": reduce.Sum(2),
    "int_max": reduce.Max(1),
}
RELATIONS: Mapping[str, Op] = {
    "equal": compare.Equal(),
    "not_equal": compare.NotEqual(),
    "greater": compare.Greater(),
    "greater_equal": compare.GreaterEqual(),
    "less": compare.Less(),
    "less_equal": compare.LessEqual(),
}
LOGIC: Mapping[str, Op] = {
    "union": selection.Union(),
    "intersection": selection.Intersection(),
}
KEPT = (DType.FLOAT16, DType.FLOAT8_E4M3, DType.FLOAT8_E5M2, DType.INT8, DType.INT4, DType.BOOL)
"""Stored types of fields; bfloat16 has no arithmetic under the interpreter."""


class Maker:
    """Nodes of the cache side, all from the keys and values of a page."""

    def __init__(self, graph: Graph, scope: Scope) -> None:
        self.sizes = graph.geometry
        self.scope = scope
        self.k, self.v = self(leaf.FieldRead("k")), self(leaf.FieldRead("v"))
        self.few, self.many = (
            self(unary.Cast(DType.INT32), self(unary.Add_Mul(0.0, factor), item))
            for factor, item in ((2.0, self.k), (1.5, self.v))
        )
        self.above = self(compare.Greater(), self.k, self.v)
        self.below = self(compare.LessEqual(), self.few, self.many)

    def __call__(self, op: Op, *inputs: Node) -> Node:
        return make_node(op, inputs, self.scope, "here")

    def as_float(self, node: Node) -> Node:
        return self(unary.Cast(DType.FLOAT32), node)


def elementwise(made: Maker) -> dict[str, Node]:
    k, v, above, below = made.k, made.v, made.above, made.below
    near = made(unary.Abs(0.0, 0.5), k)
    bools = {name: made(op, k, v) for name, op in RELATIONS.items()}
    bools |= {name: made(op, above, below) for name, op in LOGIC.items()}
    bools["complement"] = made(selection.Complement(), above)
    bools["any"] = made(reduce.Max(1), above)
    bools["all"] = made(reduce.Min(1), below)
    bools["to_bool"] = made(unary.Cast(DType.BOOL), made.few)
    return {
        **{name: made(op, k) for name, op in OF_FLOATS.items()},
        **{name: made(op, k, v) for name, op in OF_TWO_FLOATS.items()},
        **{name: made(op, made.many, made.few) for name, op in OF_TWO_INTEGERS.items()},
        **{name: made(op, made.many) for name, op in OF_INTEGERS.items()},
        **{name: made.as_float(node) for name, node in bools.items()},
        "sqrt": made(unary.Sqrt(), made(unary.Abs(), k)),
        "rsqrt": made(unary.Rsqrt(), made(unary.Abs(5.0, 1.0), k)),
        "pow": made(binary.Pow(), near, v),
        "pow_of_negative": made(binary.Pow(), made(unary.Add_Mul(0.125, 1.0), k), made.few),
        "select": made(choose.Select(), above, k, made.many),
        "constant": made(binary.Add(), made(leaf.Constant(2.5)), k),
    }


def moved(made: Maker) -> dict[str, Node]:
    """Layout, on values that no slice can be moved into."""
    k, v = made.k, made.v
    size, width = made.sizes.page_size, made.sizes.key_dim
    sums, turned = made(page_axis.CumSum(1), k), made(layout.Transpose(), k)
    row, column = made(reduce.ArgTop(size, 1), v), made(reduce.ArgTop(width, 2), v)
    rows = made(layout.Slice(0, 1, 2), row)
    columns = made(layout.Slice(0, 1, 1), column)
    outside = made(binary.Add(2.0, 1.0), columns, columns)
    flags = made(layout.Concat(2), made.above, made.below)
    return {
        "cut_rows": made(layout.Slice(1, 3, 1), sums),
        "cut_columns": made(layout.Slice(2, 7, 2), sums),
        "flat": made(layout.Reshape(1, size * width), sums),
        "reshaped": made(layout.Reshape(width // 2, size * 2), sums),
        "three": made(layout.Concat(1), k, sums, v),
        "beside_one": made(layout.Concat(2), sums, made(reduce.Sum(2), sums)),
        "flags": made.as_float(flags),
        "flags_reshaped": made.as_float(made(layout.Reshape(2 * size, width), flags)),
        "gathered_rows": made(choose.Gather(1), k, rows),
        "gathered_columns": made(choose.Gather(2), k, columns),
        "gathered_outside": made(choose.Gather(2), k, outside),
        "gathered_flags": made.as_float(made(choose.Gather(2), made.above, columns)),
        "gathered_turned": made(choose.Gather(1), turned, made(layout.Transpose(), columns)),
        "turn": made(layout.Rope(), k, made(position.TokenPosition())),
        "turn_in_pairs": made(
            layout.Rope(500.0, interleaved=True), k, made(layout.Slice(0, 1, 2), made.few)
        ),
    }


def positions(made: Maker) -> dict[str, Node]:
    """What the cache side knows of a page, spread over the keys so that it varies."""
    found = {
        "page_index": made(position.PageIndex()),
        "token_count": made(position.TokenCount()),
        "token_position": made(position.TokenPosition()),
        "token_valid": made.as_float(made(position.TokenValid())),
        "layer_index": made(position.LayerIndex()),
        "head_index": made(position.HeadIndex()),
    }
    return {name: made(binary.Multiply(), made.k, node) for name, node in found.items()}


def learned(made: Maker) -> dict[str, Node]:
    k, size, width = made.k, made.sizes.page_size, made.sizes.key_dim

    flat = made(layout.Reshape(1, size * width), made(unary.Add_Mul(), k))

    def table(name: str) -> Node:
        return made(leaf.ParameterRead(name))

    return {
        "projected": made(linear.GeMM(), k, table("param.narrow")),
        "projected_flat": made(linear.GeMM(), flat, table("param.wide")),
        "by_head": made(linear.GeMM(), k, table("param.heads")),
        "described": made(
            linear.LearnedDescriptor(3, 2, 5), k, table("param.tokens"), table("param.keys")
        ),
        "table_itself": made(binary.Multiply(), table("param.row"), k),
    }


def parameters(graph: Graph) -> tuple[Parameter, ...]:
    size, width = graph.geometry.page_size, graph.geometry.key_dim
    shapes = {
        "param.narrow": (7, width),
        "param.wide": (1100, size * width),  # no block of this size is made at once
        "param.heads": (2, 3, width),
        "param.tokens": (3, size, 2),
        "param.keys": (3, width, 5),
        "param.row": (1, width),
    }
    generator = np.random.default_rng(5)
    return tuple(
        Parameter(
            name,
            ValueType(FORMAT.PARAMETER, Leading.NONE, shape, DType.FLOAT32),
            0,
            (generator.integers(-8, 9, size=shape) / 8).astype(np.float32),
            name,
        )
        for name, shape in shapes.items()
    )


def stored(made: Maker) -> dict[str, tuple[Node, DType]]:
    """Values with what they are kept in: rounded once, at the ends of a range too."""
    large = made(unary.Add_Mul(0.0, 300.0), made(binary.Multiply(), made.k, made.v))
    small = made(unary.Add_Mul(0.0, 0.001), made.k)
    both = made(layout.Concat(1), large, small)
    whole = made(unary.Cast(DType.INT32), large)
    found = {f"kept_{dtype}": (both, dtype) for dtype in KEPT if dtype.is_float}
    found |= {f"kept_{dtype}": (whole, dtype) for dtype in KEPT if dtype.is_integer}
    odd = made(layout.Slice(0, 3, 1), made(layout.Slice(0, 5, 2), whole))
    return {**found, "kept_bool": (made.above, DType.BOOL), "kept_odd": (odd, DType.INT4)}


def probe_of(index: int) -> Graph:
    """A flow that keeps one field for each value."""
    flow = registry.get("streaming_llm")()
    graph = graph_of(flow, geometry_of(FlowKind.GQA, DType.FLOAT32, **SIZES[index]))
    graph = replace(graph, parameters=parameters(graph))
    made = Maker(graph, graph.scope(Side.CACHE))
    values = {
        name: (node, node.type.dtype.computed)
        for part in (elementwise, moved, positions, learned)
        for name, node in part(made).items()
    }
    values |= stored(made)
    fields = tuple(
        Field(name, ValueType(FORMAT.PAGED, Leading.PAGES, node.type.shape, dtype))
        for name, (node, dtype) in values.items()
    )
    graph = replace(graph, fields=(*graph.fields, *fields))
    reader = Maker(graph, graph.scope(Side.CACHE))
    again = {
        f"again_{name}": reader(layout.Slice(1, 3, 1), reader(leaf.FieldRead(name)))
        for name in AGAIN
    }
    more = tuple(
        Field(name, ValueType(FORMAT.PAGED, Leading.PAGES, node.type.shape, node.type.dtype))
        for name, node in again.items()
    )
    writes = {name: node for name, (node, _) in values.items()} | again
    probe = replace(
        graph,
        fields=(*graph.fields, *more),
        field_writes=tuple(FieldWrite(name, node) for name, node in writes.items()),
    )
    verify_graph(probe)
    return probe


AGAIN = ("kept_float16", "kept_float8_e5m2", "kept_int4")
"""Summaries that the cache side reads after it wrote them."""


@cache
def outcome(index: int) -> Fields:
    return run_completion(
        probe_of(index), Rows(tokens=(13,), budget=DefaultBudget(topk=1), kv_heads=2)
    )


NAMES = [write.target for write in probe_of(0).field_writes]
SAME_EVERYWHERE = {"layer_index", "token_count", "token_valid"}


@pytest.mark.parametrize("index", range(len(SIZES)))
@pytest.mark.parametrize("name", NAMES)
def test_an_op_has_the_value_of_the_reference(name: str, index: int) -> None:
    expected, found = (np.asarray(part, dtype=np.float64) for part in outcome(index)[name])
    if name not in SAME_EVERYWHERE:
        assert len(np.unique(expected)) > 1, "the data does not tell values apart"
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
