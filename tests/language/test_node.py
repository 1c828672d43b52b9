"""Nodes as Python defines them and as the language has them, which may be compiled code."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilewright.errors import InternalError, KernelError, KernelTypeError
from tilewright.language import front as chosen
from tilewright.language import plain
from tilewright.language.front import not_captured
from tilewright.language.source import source_line

every_kind = pytest.mark.parametrize("nodes", [plain, chosen], ids=["plain", "chosen"])


def constant(nodes: ModuleType, value: int) -> Any:
    node = nodes.Node(None, (), None)
    node.value = np.array(value)
    return node


@every_kind
def test_a_value_is_computed_once_and_lets_its_operands_go(nodes: ModuleType) -> None:
    calls = []

    def add(left: int, right: int) -> int:
        calls.append((left, right))
        return left + right

    one = constant(nodes, 1)
    total = nodes.Node(add, (one, one), None)
    assert nodes.evaluate(nodes.Node(add, (total, total), None)) == 4
    assert nodes.evaluate(total) == 2
    assert calls == [(1, 1), (2, 2)]
    assert total.run is None
    assert total.inputs == ()


@every_kind
def test_a_long_chain_needs_no_deep_stack(nodes: ModuleType) -> None:
    node = constant(nodes, 0)
    for _ in range(100_000):
        node = nodes.Node(lambda value: value + 1, (node,), None)
    assert nodes.evaluate(node) == 100_000


@every_kind
def test_a_shared_operand_that_two_need_at_once_is_computed_once(nodes: ModuleType) -> None:
    calls = []
    shared = nodes.Node(lambda: calls.append(1) or 5, (), None)  # type: ignore[func-returns-value]
    left, right = (nodes.Node(lambda value: value + 1, (shared,), None) for _ in range(2))
    assert nodes.evaluate(nodes.Node(lambda a, b: a * b, (left, right), None)) == 36
    assert calls == [1]


def fail(nodes: ModuleType, error: Exception) -> Any:
    def run() -> None:
        raise error

    def at() -> Any:
        return nodes.Node(run, (), source_line())

    return at()


@every_kind
def test_a_failure_names_the_line_that_asked_for_the_value(nodes: ModuleType) -> None:
    node = nodes.Node(lambda value: value, (fail(nodes, ValueError("no such thing")),), None)
    with pytest.raises(KernelError) as caught:
        nodes.evaluate(node)
    assert caught.value.where.startswith(f"{__file__}:")
    assert caught.value.found == "ValueError: no such thing"
    assert isinstance(caught.value.__cause__, ValueError)


@every_kind
def test_an_error_that_explains_itself_stays_as_it_is(nodes: ModuleType) -> None:
    error = KernelTypeError("dot", "a", "b", "c")
    with pytest.raises(KernelTypeError) as caught:
        nodes.evaluate(fail(nodes, error))
    assert caught.value is error


@every_kind
def test_a_load_that_has_not_been_served_has_no_value(nodes: ModuleType) -> None:
    node = nodes.Node(not_captured, (), None)
    with pytest.raises(InternalError, match="a value asked for before its load"):
        nodes.evaluate(node)
    node.settle(np.array(3))
    assert nodes.evaluate(node) == 3


@every_kind
def test_a_value_is_determined_as_soon_as_all_loads_behind_it_are_captured(
    nodes: ModuleType,
) -> None:
    def add(left: int, right: int) -> int:
        return left + right

    loads = [nodes.Node(not_captured, (), None) for _ in range(2)]
    total = nodes.Node(add, loads, None)
    top = nodes.Node(add, (total, total), None)
    assert nodes.is_determined(constant(nodes, 1))
    assert not nodes.is_determined(top)
    loads[0].settle(np.array(1))
    assert not nodes.is_determined(top)
    loads[1].settle(np.array(2))
    assert nodes.is_determined(top)
    assert total.run is add  # asking computes nothing
    assert nodes.evaluate(top) == 6
    assert nodes.is_determined(top)


@every_kind
def test_asking_if_a_value_is_determined_visits_each_operand_once(nodes: ModuleType) -> None:
    top = nodes.Node(not_captured, (), None)
    for _ in range(200):  # 2**200 paths
        top = nodes.Node(max, (top, top), None)
    assert not nodes.is_determined(top)


@every_kind
def test_a_long_chain_over_a_load_that_was_served_is_not_remembered(nodes: ModuleType) -> None:
    """Of a second load, which was not served, what was made of it stays."""
    first, second = nodes.Node(not_captured, (), None), nodes.Node(not_captured, (), None)
    first.settle(np.array(0))
    ran = []

    def add(left: int, right: int) -> int:
        ran.append(1)
        return left + right

    one, top, beside = constant(nodes, 1), first, nodes.Node(add, (second, second), None)
    chain = []
    for _ in range(2 * plain.LONG_CHAIN + 2):
        top = nodes.Node(add, (top, one), None)
        chain.append(top)
    total = nodes.Node(add, (top, beside), None)
    assert sum(node.run is not None for node in chain) <= plain.LONG_CHAIN + 2
    assert beside.run is not None
    second.settle(np.array(5))
    assert nodes.evaluate(total) == 2 * plain.LONG_CHAIN + 2 + 10
    assert len(ran) == len(chain) + 2


@every_kind
def test_a_value_that_fails_says_so_when_somebody_asks_for_it(nodes: ModuleType) -> None:
    def fail(_: int) -> int:
        raise ValueError("no")

    line = source_line()
    top = broken = nodes.Node(fail, (constant(nodes, 1),), line)
    for _ in range(plain.LONG_CHAIN + 2):
        top = nodes.Node(abs, (top,), None)
    assert broken.run is not None
    with pytest.raises(KernelError, match="ValueError: no"):
        nodes.evaluate(top)
