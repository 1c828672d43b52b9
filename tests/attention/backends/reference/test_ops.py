"""Every op of the table against its definition: one contract, both namespaces."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attention.backends.reference.op_cases import (
    PAGE_SIZE,
    QUERY_HEADS,
    Case,
    Given,
    cases_by_name,
)
from tests.attention.oracle_ops.row import OracleRow
from tests.attention.oracle_ops.table import ORACLES
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.backends.reference.op import EVALUATORS, SOURCES, evaluate_op
from tilewright.attention.backends.reference.op.frame import Frame, TokenView
from tilewright.attention.graph import DType, Geometry, Scope, Side
from tilewright.attention.ops import OPS
from tilewright.attention.ops.page_axis import AcrossHeads
from tilewright.attention.planner import Reserved, RowBudget

NUM_HEADS = 2
GEOMETRY = Geometry.gqa(page_size=PAGE_SIZE, head_dim=5, query_heads=QUERY_HEADS)
BY_NAME = cases_by_name()

Rows = st.builds(
    OracleRow,
    num_pages=st.integers(1, 9),
    first_reserved=st.integers(0, 2),
    last_reserved=st.integers(1, 2),
    block_size=st.just(PAGE_SIZE),
    last_page_tokens=st.integers(1, PAGE_SIZE),
    budget=st.integers(0, 4),
    step=st.integers(0, 3),
    layer=st.integers(0, 3),
    query_heads=st.just(QUERY_HEADS),
)


def test_every_op_has_an_oracle_a_case_and_an_evaluator() -> None:
    names = {op.__name__ for op in SOURCES}
    assert set(OPS) <= set(ORACLES)
    assert set(OPS) - names == set(BY_NAME)
    assert {op.__name__ for op in EVALUATORS} | names == set(OPS)


@pytest.mark.parametrize("name", sorted(BY_NAME))
@settings(max_examples=settings().max_examples // 12)
@given(row=Rows, seed=st.integers(0, 2**32 - 1))
def test_an_op_on_numpy_is_what_its_oracle_says(name: str, row: OracleRow, seed: int) -> None:
    for case in BY_NAME[name]:
        check(case, row, seed, "numpy")


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_an_op_on_torch_is_what_its_oracle_says(name: str) -> None:
    pytest.importorskip("torch")
    for pages, last_tokens in ((7, PAGE_SIZE), (6, 3), (2, 1)):
        row = OracleRow(
            pages, 1, 1, PAGE_SIZE, last_tokens, budget=2, step=1, query_heads=QUERY_HEADS
        )
        for case in BY_NAME[name]:
            check(case, row, pages, "torch")


def check(case: Case, row: OracleRow, seed: int, namespace: str) -> None:
    frame = frame_of(case, row, namespace)
    rng = np.random.default_rng(seed)
    pages = 1 if case.side is Side.CACHE else row.num_pages
    values = [numbers(rng, operand, pages) for operand in case.operands]
    types = tuple(operand.type(case.side) for operand in case.operands)
    arrays = tuple(
        frame.namespace.array(value, value_type.dtype)
        for value, value_type in zip(values, types, strict=True)
    )
    with frame.namespace.quiet():
        found = evaluate_op(case.op, arrays, types, frame)
    inferred = case.op.infer(types, Scope(case.side, GEOMETRY))
    shape = (*found.shape[:2], *inferred.shape)
    assert tuple(found.shape) == shape
    assert found.dtype == frame.namespace.dtypes[inferred.dtype.computed]
    for head in range(NUM_HEADS):
        expected = defined(case, row, values, head)
        actual = np.asarray(found[head if found.shape[0] > 1 else 0], dtype=np.float64)
        expected = np.where(there(row, actual, inferred.token_axes), expected, actual)
        compare(actual, expected, inferred.dtype, case)


def frame_of(case: Case, row: OracleRow, namespace: str) -> Frame:
    reserved = len(row.reserved)
    most = min(row.budget + reserved, row.num_pages)
    pages = TokenView(0, row.num_pages, PAGE_SIZE, row.last_page_tokens)
    if case.side is Side.CACHE:
        pages = TokenView(row.num_pages - 1, 1, PAGE_SIZE, row.last_page_tokens)
    return Frame(
        namespace=load_namespace(namespace),
        side=case.side,
        geometry=GEOMETRY,
        num_heads=NUM_HEADS,
        pages=pages,
        layer=row.layer,
        step=row.step,
        reserved=Reserved(row.first_reserved, row.last_reserved),
        budgets=(RowBudget(most, most),) * NUM_HEADS,
    )


def numbers(rng: np.random.Generator, operand: Given, num_pages: int) -> Any:
    """[heads or 1, pages or 1, ...]: float32 values, so that both sides start from the same."""
    if operand.per == "parameter":
        lead = (1, 1)
    else:
        lead = (NUM_HEADS, num_pages if operand.per == "page" else 1)
    shape = (*lead, *operand.shape)
    if operand.kind.startswith("index"):
        return rng.integers(-1, int(operand.kind.partition(":")[2]), shape)
    match operand.kind:
        case "int":
            return rng.integers(-40, 40, shape)
        case "bool":
            return rng.integers(0, 2, shape).astype(bool)
        case "whole":
            return rng.integers(0, 4, shape).astype(np.float32)
        case "positive":
            return rng.uniform(0.1, 2.0, shape).astype(np.float32)
        case _:
            return rng.normal(size=shape).astype(np.float32)


def defined(case: Case, row: OracleRow, values: list[Any], head: int) -> Any:
    """The oracle's result for one head."""
    at = OracleRow(
        row.num_pages,
        row.first_reserved,
        row.last_reserved,
        row.block_size,
        row.last_page_tokens,
        min(row.budget, len(row.middle)),
        row.step,
        row.layer,
        head,
        row.query_heads,
        row.num_pages - 1 if case.side is Side.CACHE else None,
    )
    if isinstance(case.op, AcrossHeads):
        heads = [wide(values[0][index]) for index in range(NUM_HEADS)]
        return ORACLES[case.name](at, *heads, **case.op.attributes())
    arrays = [wide(value[head if value.shape[0] > 1 else 0]) for value in values]
    axes = tuple(operand.token_axes for operand in case.operands)
    return ORACLES[case.name](at, *arrays, token_axes=axes, **case.op.attributes())


def there(row: OracleRow, result: Any, token_axes: tuple[int, ...]) -> Any:
    """Elements that belong to tokens that are there; what the others hold nobody may ask."""
    valid = np.ones(result.shape, dtype=bool)
    for axis in token_axes:
        part = [slice(None)] * 3
        part[0], part[axis] = slice(-1, None), slice(row.last_page_tokens, None)
        valid[tuple(part)] = False
    return valid


def wide(value: Any) -> Any:
    if value.dtype.kind == "f":
        return value.astype(np.float64)
    return value.astype(np.int64) if value.dtype.kind == "i" else value


def compare(actual: Any, expected: Any, dtype: DType, case: Case) -> None:
    actual, expected = np.broadcast_arrays(actual, expected.astype(np.float64))
    if not dtype.is_float:
        np.testing.assert_array_equal(actual, expected, err_msg=str(case))
        return
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-5, err_msg=str(case))
