"""Values of single ops: what the kernel of complete pages writes, beside the reference."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.attention.triton.pair import Pair, Rows, geometry_of, graph_of, run_pair
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
    Side,
    ValueType,
    make_node,
    verify_graph,
)
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    interleave,
    layout,
    leaf,
    linear,
    reduce,
    selection,
    unary,
)
from tilewright.attention.planner import DefaultBudget

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
    "sum_rows": reduce.Sum(1),
    "sum_columns": reduce.Sum(2),
    "mean": reduce.Mean(1),
    "max": reduce.Max(2),
    "min": reduce.Min(1),
    "norm": reduce.L2Norm(2),
    "sum_pairs": interleave.SumInterleave(1, 2),
    "mean_pairs": interleave.MeanInterleave(2, 4),
    "max_pairs": interleave.MaxInterleave(2, 2),
    "min_pairs": interleave.MinInterleave(1, 2),
    "norm_pairs": interleave.L2NormInterleave(2, 8),
    "turned": layout.Transpose(),
    "part": layout.Slice(3, 6, 2),
    "masked": layout.MaskSlice(1, 3, 1, 2.0, -1.0),
}
OF_TWO_FLOATS: Mapping[str, Op] = {
    "add": binary.Add(2.0, -0.5),
    "multiply": binary.Multiply(),
    "maximum": binary.Maximum(),
    "minimum": binary.Minimum(),
    "product": linear.GeMM(),
    "mask_less": compare.WhereLess(),
    "mask_equal": compare.WhereEqual(),
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
}
LOGIC: Mapping[str, Op] = {
    "union": selection.Union(),
    "intersection": selection.Intersection(),
}


def written_values(graph: Graph) -> dict[str, Node]:
    """One value for each op, all from the keys and values of a page."""
    scope = graph.scope(Side.CACHE)

    def made(op: Op, *inputs: Node) -> Node:
        return make_node(op, inputs, scope, "here")

    k, v = made(leaf.FieldRead("k")), made(leaf.FieldRead("v"))
    few, many = (
        made(unary.Cast(DType.INT32), made(unary.Add_Mul(0.0, factor), item))
        for factor, item in ((2.0, k), (1.5, v))
    )
    above, below = made(compare.Greater(), k, v), made(compare.LessEqual(), few, many)
    both = {name: made(op, above, below) for name, op in LOGIC.items()}
    both["complement"] = made(selection.Complement(), above)
    both["any"] = made(reduce.Max(1), above)
    return {
        **{name: made(op, k) for name, op in OF_FLOATS.items()},
        **{name: made(op, k, v) for name, op in OF_TWO_FLOATS.items()},
        **{name: made(op, many, few) for name, op in OF_TWO_INTEGERS.items()},
        "sqrt": made(unary.Sqrt(), made(unary.Abs(), k)),
        "rsqrt": made(unary.Rsqrt(), made(unary.Abs(5.0, 1.0), k)),
        "bit_not": made(unary.BitNot(), few),
        "select": made(choose.Select(), above, k, many),
        **{name: made(unary.Cast(DType.FLOAT32), node) for name, node in both.items()},
    }


@cache
def outcome() -> Pair:
    flow = registry.get("streaming_llm")()
    graph = graph_of(flow, geometry_of(FlowKind.GQA, DType.FLOAT32))
    values = written_values(graph)
    fields = tuple(
        Field(
            name, ValueType(FORMAT.PAGED, Leading.PAGES, node.type.shape, node.type.dtype.computed)
        )
        for name, node in values.items()
    )
    writes = tuple(FieldWrite(name, node) for name, node in values.items())
    probe = replace(graph, fields=(*graph.fields, *fields), field_writes=writes)
    verify_graph(probe)
    return run_pair(probe, Rows(tokens=(13,), budget=DefaultBudget(topk=1), kv_heads=2))


NAMES = (
    *OF_FLOATS,
    *OF_TWO_FLOATS,
    *OF_TWO_INTEGERS,
    *LOGIC,
    *("complement", "any", "sqrt", "rsqrt", "bit_not", "select"),
)


@pytest.mark.parametrize("name", NAMES)
def test_an_op_has_the_value_of_the_reference(name: str) -> None:
    expected, found = outcome().fields[name]
    assert len(np.unique(expected)) > 1, "the data does not tell values apart"
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
