"""Infix and method forms, and what a value of a flow refuses to do."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.attention.flow.making import examine, score
from tilewright.attention.graph import Graph, Node, Side
from tilewright.errors import FlowError, ForeignCallError, OperandError

Unfinished = Callable[[Any, Any], Any]


def traced(make: Unfinished) -> Node:
    """The node of a value that a flow saves: it is a root, whatever its meaning."""
    kept: list[Node] = []

    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        kept.append(make(q, cache).node)
        o.select(score(q, cache).topk())

    examine(forward)
    return kept[0]


def names(node: Node) -> list[str]:
    """The op, then those of its inputs."""
    return [node.op.name, *(item.op.name for item in node.inputs)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda q, _c: q + 1.0, ["Add", "Input", "Constant"]),
        (lambda q, _c: 1.0 + q, ["Add", "Constant", "Input"]),
        (lambda q, _c: q - q, ["Add", "Input", "Input"]),
        (lambda q, _c: 2 - q, ["Add", "Constant", "Input"]),
        (lambda q, c: q * c["centroids"], ["Multiply", "Input", "FieldRead"]),
        (lambda q, _c: 2.0 * q, ["Multiply", "Constant", "Input"]),
        (lambda q, _c: q / 3.0, ["Divide", "Input", "Constant"]),
        (lambda q, _c: 3.0 / q, ["Divide", "Constant", "Input"]),
        (lambda q, _c: q**2.0, ["Pow", "Input", "Constant"]),
        (lambda q, _c: 2.0**q, ["Pow", "Constant", "Input"]),
        (lambda q, _c: -q, ["Multiply", "Input", "Constant"]),
        (lambda q, _c: abs(q), ["Abs", "Input"]),
        (lambda q, _c: q > 0, ["Greater", "Input", "Constant"]),
        (lambda q, _c: q >= 0, ["GreaterEqual", "Input", "Constant"]),
        (lambda q, _c: q < 0, ["Less", "Input", "Constant"]),
        (lambda q, _c: q <= 0, ["LessEqual", "Input", "Constant"]),
        (lambda q, _c: q == 0, ["Equal", "Input", "Constant"]),
        (lambda q, _c: q != 0, ["NotEqual", "Input", "Constant"]),
        (lambda q, _c: (q > 0) & (q < 1), ["Intersection", "Greater", "Less"]),
        (lambda q, _c: (q > 0) | (q < 1), ["Union", "Greater", "Less"]),
        (lambda q, _c: ~(q > 0), ["Complement", "Greater"]),
        (lambda q, _c: (q > 0).where(q, 0.0), ["Select", "Greater", "Input", "Constant"]),
        (lambda q, _c: q.cast("int32") % 4, ["Remainder", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") // 4, ["FloorDivide", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") & 3, ["BitAnd", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") | 3, ["BitOr", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") ^ 3, ["BitXor", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") << 3, ["ShiftLeft", "Cast", "Constant"]),
        (lambda q, _c: q.cast("int32") >> 3, ["ShiftRight", "Cast", "Constant"]),
        (lambda q, _c: ~q.cast("int32"), ["BitNot", "Cast"]),
        (lambda q, _c: q.argmax(2), ["ArgMax", "Input"]),
        (lambda q, _c: q.gather(q.mean(1).argtop(3)), ["Gather", "Input", "ArgTop"]),
        (lambda q, _c: q.clamp(low=0.0), ["Clamp", "Input"]),
        (lambda q, _c: q.sqrt(), ["Sqrt", "Input"]),
        (lambda q, _c: q.rsqrt(), ["Rsqrt", "Input"]),
        (lambda q, _c: q.relu(), ["Relu", "Input"]),
        (lambda q, _c: q.sign(), ["Sign", "Input"]),
        (lambda q, _c: q.floor(), ["Floor", "Input"]),
        (lambda q, _c: q.exp().log(), ["Log", "Exp"]),
        (lambda q, c: q.maximum(c["centroids"]), ["Maximum", "Input", "FieldRead"]),
        (lambda q, c: q.minimum(c["centroids"]), ["Minimum", "Input", "FieldRead"]),
        (lambda q, c: score(q, c).cumsum(0), ["CumSum", "Max"]),
        (lambda q, c: score(q, c).threshold(0.5), ["Threshold", "Max"]),
        (lambda q, _c: q.reshape(1, 64), ["Reshape", "Input"]),
    ],
)
def test_an_infix_or_method_form_is_the_op_that_it_looks_like(
    make: Unfinished, expected: list[str]
) -> None:
    assert names(traced(make)) == expected


def test_a_matrix_product_is_that_of_numpy() -> None:
    node = traced(lambda q, cache: q.mean(1) @ cache["centroids"].T)
    assert node.type.shape == (1, 1)
    assert traced(lambda q, cache: q @ cache["k"].T).type.shape == (4, 8)


def test_the_logistic_function_is_meant_by_the_method() -> None:
    assert traced(lambda q, _: q.sigmoid()).op.attributes() == {"alpha": 0.0, "beta": -1.0}


def test_numbers_beside_integers_are_integers_and_beside_floats_floats() -> None:
    node = traced(lambda q, _: q.cast("int32") + 1)
    assert node.type.dtype == "int32"
    assert traced(lambda q, _: q.cast("int32") + 0.5).type.dtype == "float32"
    assert traced(lambda q, _: q + 1).type.dtype == "float32"


def test_slices_cut_rows_and_columns() -> None:
    assert traced(lambda q, _: q[:, 0:2, 4:]).type.shape == (2, 12)
    assert traced(lambda q, _: q[:, -1:]).type.shape == (1, 16)
    assert traced(lambda q, _: q[:, :, :].mean(1)).op.name == "Mean"


@pytest.mark.parametrize(
    "key", [0, (slice(None), 0), (slice(0, 1),), (slice(None), slice(0, 4, 2))]
)
def test_other_indices_are_refused(key: object) -> None:
    with pytest.raises(ForeignCallError, match="found the index"):
        traced(lambda q, _: q[key])


def test_an_empty_slice_is_refused() -> None:
    with pytest.raises(OperandError, match="expected an entry"):
        traced(lambda q, _: q[:, 2:2])


@pytest.mark.parametrize(
    ("use", "found"),
    [
        (lambda q: torch.matmul(q, q), "found torch's matmul"),
        (lambda q: torch.cat([q, q]), "found torch's cat"),
        (lambda q: torch.nn.functional.relu(q), "found torch's relu"),
        (lambda q: np.exp(q), "found NumPy's exp"),
        (lambda q: np.concatenate([q, q]), "found NumPy's concatenate"),
        (lambda q: np.asarray(q), "found a conversion to a NumPy array"),
        (lambda q: torch.ones(4, 16) * q, "found torch's"),
        (lambda q: q * np.ones((4, 16)), r"found (a numpy.ndarray|NumPy's multiply)"),
        (lambda q: q + torch.ones(4, 16), "found (a torch.Tensor|torch's)"),
        (lambda q: q if q > 0 else -q, "found a decision of Python on it"),
        (float, "found a conversion to a number"),
        (int, "found a conversion to a number"),
        (list, "found a loop over it"),
        (lambda q: q.cpu(), "found the attribute 'cpu'"),
        (lambda q: q + "1", "found a builtins.str"),
        (lambda q: q + None, "found a builtins.NoneType"),
        (operator.itemgetter(None), "found the index None"),
    ],
)
def test_a_value_handed_to_torch_numpy_or_python_is_refused_by_name(use: Any, found: str) -> None:
    def forward(q: Any, _o: Any, _cache: Any, _ctx: Any) -> None:
        use(q)

    with pytest.raises(FlowError, match=found) as caught:
        examine(forward)
    assert isinstance(caught.value, ForeignCallError)
    assert caught.value.flow == "made"
    assert caught.value.method == "forward_indexer"


def test_a_wrong_attribute_of_a_method_is_told_with_its_line() -> None:
    with pytest.raises(OperandError, match=r"test_value\.py:\d+.*found dim=3"):
        traced(lambda q, _: q.mean(3))


def test_a_choice_by_name_is_a_member_and_an_unknown_one_is_refused() -> None:
    node = traced(lambda q, c: score(q, c).softmax(0, span="all"))
    assert repr(node.op.attributes()["span"]) == "<Span.ALL: 'all'>"
    with pytest.raises(OperandError, match="found span='some', expected one of middle, all"):
        traced(lambda q, c: score(q, c).softmax(0, span="some"))


def test_values_can_be_keys_of_a_dict() -> None:
    def forward(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        chosen = score(q, cache).topk()
        o.select({chosen: chosen}[chosen])

    graph: Graph = examine(forward).graph
    assert len(list(graph.nodes(Side.INDEXER))) > 1
