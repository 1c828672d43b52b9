"""Each rule of the canonical form on the smallest expression that it applies to."""

from collections.abc import Callable

import pytest

from tests.attention.graph.random_graphs import GEOMETRY, VARIABLES
from tilewright.attention.graph import (
    Branch,
    DType,
    Field,
    Graph,
    Node,
    Op,
    Output,
    Scope,
    Side,
    make_node,
)
from tilewright.attention.ops import binary, compare, layout, reduce, selection, unary
from tilewright.attention.ops.leaf import Constant, FieldRead, Input
from tilewright.attention.ops.position import PageIndex, ReservedPages
from tilewright.attention.passes.exact import canonical_form

SCOPE = Scope(Side.INDEXER, GEOMETRY, VARIABLES)


def node(op: Op, *inputs: Node) -> Node:
    return make_node(op, inputs, SCOPE, "")


QUERY = node(Input("q"))
HIGH = node(FieldRead("high"))
WARM = node(unary.Relu(), QUERY)  # BATCHED float32 [1, 4, 8]
PAGES = node(binary.Multiply(), WARM, HIGH)  # RAGGED float32 [S, 4, 8]
WHOLE = node(PageIndex())
MASK = node(ReservedPages())
QUARTER = node(Constant(0.25))


def canonical(value: Node) -> Node:
    """The value after the pass, found again behind a selection that needs it."""
    kind = value.type
    number = value if kind.dtype is not DType.BOOL else node(unary.Cast(DType.FLOAT32), value)
    for dim in (1, 2):
        if number.type.shape[dim - 1] > 1:
            number = node(layout.Slice(0, 1, dim), number)
    score = node(binary.Divide(), number, WHOLE)
    graph = Graph(
        name="rule",
        geometry=GEOMETRY,
        fields=tuple(Field(name, VARIABLES[name]) for name in ("k", "v", "high", "low")),
        inputs=(("q", VARIABLES["q"]),),
        output=Output((Branch(node(selection.TopK(), score)),)),
    )
    (branch,) = canonical_form(graph).output.branches
    assert branch.selection is not None
    found = branch.selection.inputs[0].inputs[0]
    while isinstance(found.op, layout.Slice):
        found = found.inputs[0]
    return found.inputs[0] if kind.dtype is DType.BOOL else found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: node(binary.Add(), PAGES, QUARTER), unary.Add_Mul(0.25, 1.0)),
        (lambda: node(binary.Add(), QUARTER, PAGES), unary.Add_Mul(0.25, 1.0)),
        (lambda: node(binary.Add(1.0, -1.0), PAGES, QUARTER), unary.Add_Mul(-0.25, 1.0)),
        (lambda: node(binary.Add(1.0, -1.0), QUARTER, PAGES), unary.Add_Mul(0.25, -1.0)),
        (lambda: node(binary.Add(-1.0, 1.0), PAGES, QUARTER), unary.Add_Mul(0.25, -1.0)),
        (lambda: node(binary.Multiply(), QUARTER, PAGES), unary.Add_Mul(0.0, 0.25)),
    ],
)
def test_a_sum_or_product_with_a_number_has_one_form(
    make: Callable[[], Node], expected: Op
) -> None:
    found = canonical(make())
    assert found.op == expected
    assert found.inputs[0].op == PAGES.op


def test_a_sum_with_rounded_factors_stays() -> None:
    assert isinstance(canonical(node(binary.Add(0.5, 1.0), PAGES, QUARTER)).op, binary.Add)


@pytest.mark.parametrize(
    "make",
    [
        lambda: node(layout.Transpose(), node(layout.Transpose(), PAGES)),
        lambda: node(unary.Cast(DType.FLOAT32), PAGES),
        lambda: node(unary.Add_Mul(0.0, 1.0), PAGES),
        lambda: node(layout.Reshape(4, 8), PAGES),
        lambda: node(layout.Slice(0, 8, 2), PAGES),
    ],
)
def test_what_gives_back_its_input_is_gone(make: Callable[[], Node]) -> None:
    assert canonical(make()).op == PAGES.op


def test_what_lifts_a_field_stays() -> None:
    assert canonical(node(unary.Cast(DType.FLOAT32), HIGH)).op == unary.Cast(DType.FLOAT32)
    turned = node(layout.Transpose(), node(layout.Transpose(), HIGH))
    assert isinstance(canonical(turned).op, layout.Transpose)


def test_a_cast_that_rounds_stays() -> None:
    narrow = node(unary.Cast(DType.BFLOAT16), PAGES)
    assert canonical(node(unary.Cast(DType.FLOAT32), narrow)).inputs[0].op == narrow.op


@pytest.mark.parametrize("op", [binary.Multiply(), binary.Maximum(), binary.Add()])
def test_operands_that_may_change_places_have_one_order(op: Op) -> None:
    one, other = canonical(node(op, WARM, PAGES)), canonical(node(op, PAGES, WARM))
    assert [item.op for item in one.inputs] == [item.op for item in other.inputs]
    assert one.inputs[0].op == WARM.op  # per row first


def test_operands_that_may_not_change_places_keep_them() -> None:
    found = canonical(node(binary.Add(1.0, -1.0), PAGES, WARM))
    assert found.inputs[0].op == PAGES.op


def test_a_comparison_looks_one_way() -> None:
    found = canonical(node(compare.WhereGreater(), PAGES, WARM))
    assert isinstance(found.op, compare.WhereLess)
    assert found.inputs[0].op == WARM.op


def test_a_reduction_comes_before_a_transpose() -> None:
    found = canonical(node(reduce.Max(1), node(layout.Transpose(), PAGES)))
    assert isinstance(found.op, layout.Transpose)
    assert found.inputs[0].op == reduce.Max(2)


def test_unions_are_flat_and_have_no_repetitions() -> None:
    other = node(compare.Less(), WHOLE, node(Constant(3.0, DType.INT32)))
    nested = node(selection.Union(), node(selection.Union(), MASK, other), MASK)
    found = canonical(nested)
    assert [item.op for item in found.inputs] == [MASK.op, other.op]
    assert canonical(node(selection.Union(), MASK, MASK)).op == MASK.op
    twice = node(selection.Complement(), node(selection.Complement(), MASK))
    assert canonical(twice).op == MASK.op
