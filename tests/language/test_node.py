import numpy as np
import pytest

from tilewright.errors import InternalError, KernelError, KernelTypeError
from tilewright.language.node import Node, constant_node, evaluate, not_captured
from tilewright.language.source import source_line


def test_a_value_is_computed_once_and_lets_its_operands_go() -> None:
    calls = []

    def add(left: int, right: int) -> int:
        calls.append((left, right))
        return left + right

    one = constant_node(np.array(1))
    total = Node(add, (one, one), None)
    assert evaluate(Node(add, (total, total), None)) == 4
    assert evaluate(total) == 2
    assert calls == [(1, 1), (2, 2)]
    assert total.run is None
    assert total.inputs == ()


def test_a_long_chain_needs_no_deep_stack() -> None:
    node = constant_node(np.array(0))
    for _ in range(100_000):
        node = Node(lambda value: value + 1, (node,), None)
    assert evaluate(node) == 100_000


def test_a_shared_operand_that_two_need_at_once_is_computed_once() -> None:
    calls = []
    shared = Node(lambda: calls.append(1) or 5, (), None)  # type: ignore[func-returns-value]
    left, right = (Node(lambda value: value + 1, (shared,), None) for _ in range(2))
    assert evaluate(Node(lambda a, b: a * b, (left, right), None)) == 36
    assert calls == [1]


def fail(error: Exception) -> Node:
    def run() -> None:
        raise error

    def at() -> Node:
        return Node(run, (), source_line())

    return at()


def test_a_failure_names_the_line_that_asked_for_the_value() -> None:
    node = Node(lambda value: value, (fail(ValueError("no such thing")),), None)
    with pytest.raises(KernelError) as caught:
        evaluate(node)
    assert caught.value.where.startswith(f"{__file__}:")
    assert caught.value.found == "ValueError: no such thing"
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_error_that_explains_itself_stays_as_it_is() -> None:
    error = KernelTypeError("dot", "a", "b", "c")
    with pytest.raises(KernelTypeError) as caught:
        evaluate(fail(error))
    assert caught.value is error


def test_a_load_that_has_not_been_served_has_no_value() -> None:
    node = Node(not_captured, (), None)
    with pytest.raises(InternalError, match="a value asked for before its load"):
        evaluate(node)
    node.settle(np.array(3))
    assert evaluate(node) == 3
