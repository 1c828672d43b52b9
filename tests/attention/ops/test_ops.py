"""Rules of types: every op's example, broadcasting, and what does not fit."""

import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.ops.example import EXAMPLES, Example, example_scope, ops_of
from tests.attention.ops.reference_page import op_reference
from tilewright.attention.graph import FORMAT, DType, Leading, Op, Scope, Side, ValueType
from tilewright.attention.ops import OPS, binary, choose, layout, linear, reduce, unary
from tilewright.attention.ops import selection as select
from tilewright.attention.ops.table import build_table
from tilewright.errors import OperandError, RegistryError

SCOPE = example_scope(Side.INDEXER)
PAGE = Path(__file__).parents[3] / "docs" / "ops.md"


def per_row(*shape: int, dtype: DType = DType.FLOAT32) -> ValueType:
    return ValueType(FORMAT.BATCHED, Leading.ONE, shape, dtype)


def per_page(*shape: int, dtype: DType = DType.FLOAT32, tokens: tuple[int, ...] = ()) -> ValueType:
    return ValueType(FORMAT.RAGGED, Leading.PAGES, shape, dtype, tokens)


def test_the_op_reference_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("update_golden"):
        PAGE.write_text(op_reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == op_reference()


def test_every_op_has_an_example_a_text_and_a_place_in_the_reference() -> None:
    for module in {sys.modules[op.__module__] for op in OPS.values()}:
        own = [item for item in vars(module).values() if isinstance(item, type)]
        ops = [op for op in own if issubclass(op, Op) and op.__module__ == module.__name__]
        alone = [op for op in ops if not op.__subclasses__()]  # the others are bases
        in_table = {op for op in OPS.values() if op.__module__ == module.__name__}
        assert set(alone) <= in_table <= set(ops)
    assert set(ops_of(EXAMPLES)) == set(OPS.values())
    for op in OPS.values():
        assert op.__doc__
        assert f"### {op.__name__}\n" in op_reference()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: item.op.name)
def test_an_example_fits_and_its_result_is_a_computed_type(example: Example) -> None:
    result = example.result()
    leaf = not example.inputs
    assert leaf or result.dtype is result.dtype.computed
    assert leaf or result.format in (FORMAT.BATCHED, FORMAT.RAGGED)  # never PAGED


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: item.op.name)
def test_an_op_cannot_be_changed_and_equals_its_copy(example: Example) -> None:
    op = example.op
    assert type(op)(**op.attributes()) == op
    for item in fields(op):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(op, item.name, None)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: item.op.name)
def test_a_wrong_number_of_operands_is_refused(example: Example) -> None:
    scope = example_scope(example.side)
    extra = (*example.inputs, per_row(1, 1))
    if not any(name.endswith("...") for name in example.op.operands):
        with pytest.raises(OperandError, match=f"found {len(extra)} operands"):
            example.op.result_type(extra, scope)
    if example.inputs:
        with pytest.raises(OperandError, match="found 0 operands"):
            example.op.result_type((), scope)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: item.op.name)
def test_an_op_of_one_side_is_refused_on_the_other(example: Example) -> None:
    other = Side.CACHE if example.side is Side.INDEXER else Side.INDEXER
    if other in example.op.sides:
        return
    with pytest.raises(OperandError, match=f"found use in the {other} side"):
        example.op.result_type(example.inputs, example_scope(other))


SIZES = st.sampled_from([1, 2, 3])


@given(shapes=st.tuples(SIZES, SIZES, SIZES, SIZES), ragged=st.tuples(st.booleans(), st.booleans()))
def test_inner_axes_broadcast_as_numpy_does(
    shapes: tuple[int, int, int, int], ragged: tuple[bool, bool]
) -> None:
    one, other = shapes[:2], shapes[2:]
    x = per_page(*one) if ragged[0] else per_row(*one)
    y = per_page(*other) if ragged[1] else per_row(*other)
    fits = all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))
    if not fits:
        with pytest.raises(OperandError, match="entries, as the other operand has"):
            binary.Add().result_type((x, y), SCOPE)
        return
    result = binary.Add().result_type((x, y), SCOPE)
    assert result.shape == tuple(map(max, one, other))
    assert result.format is (FORMAT.RAGGED if any(ragged) else FORMAT.BATCHED)


@given(dtypes=st.tuples(st.sampled_from(list(DType)), st.sampled_from(list(DType))))
def test_two_integers_give_an_integer_and_a_float_gives_a_float(
    dtypes: tuple[DType, DType],
) -> None:
    operands = tuple(per_page(1, 1, dtype=dtype) for dtype in dtypes)
    if DType.BOOL in dtypes:
        with pytest.raises(OperandError, match="expected numbers"):
            binary.Multiply().result_type(operands, SCOPE)
        return
    whole = all(dtype.is_integer for dtype in dtypes)
    result = binary.Multiply().result_type(operands, SCOPE)
    assert result.dtype is (DType.INT32 if whole else DType.FLOAT32)
    assert binary.Divide().result_type(operands, SCOPE).dtype is DType.FLOAT32


TOKENS = per_page(16, 64, tokens=(1,))


@pytest.mark.parametrize(
    ("op", "inputs", "tokens"),
    [
        (unary.Relu(), (TOKENS,), (1,)),
        (layout.Transpose(), (TOKENS,), (2,)),
        (reduce.Sum(1), (TOKENS,), ()),
        (reduce.Sum(2), (TOKENS,), (1,)),
        (binary.Add(), (TOKENS, per_row(1, 64)), (1,)),
        (linear.GeMM(), (per_row(4, 64), TOKENS), (1,)),
        (linear.GeMM(), (TOKENS, per_row(4, 64)), (2,)),
        (linear.GeMM(), (TOKENS, TOKENS), (1, 2)),
        (layout.Reshape(64, 16), (TOKENS,), ()),
        (layout.Slice(0, 8, 1), (TOKENS,), ()),
        (layout.Slice(0, 8, 2), (TOKENS,), (1,)),
        (choose.Gather(1), (TOKENS, per_row(2, 1, dtype=DType.INT32)), ()),
    ],
)
def test_the_axis_over_tokens_is_followed(
    op: Op, inputs: tuple[ValueType, ...], tokens: tuple[int, ...]
) -> None:
    assert op.result_type(inputs, SCOPE).token_axes == tokens


@pytest.mark.parametrize(
    ("op", "inputs", "found"),
    [
        (linear.GeMM(), (per_row(4, 64), per_page(1, 32)), "expected a last axis of 64"),
        (linear.Kron((1,)), (per_row(4, 64), per_page(2, 32)), "entries, as the other operand has"),
        (choose.Select(), (per_page(1, 1), per_page(1, 1), per_page(1, 1)), "expected bools"),
        (choose.Gather(2), (per_page(1, 8), per_row(1, 2)), "expected integers"),
        (choose.Gather(1), (per_page(4, 8), per_row(1, 2, dtype=DType.INT32)), "inner shape"),
        (binary.BitAnd(), (per_page(1, 1), per_page(1, 1)), "expected integers"),
        (binary.Add(0.5, 1.0), (per_page(1, 1, dtype=DType.INT32),) * 2, "whole factors"),
        (select.TopK(), (per_page(1, 4),), "reduce over query heads first"),
        (select.TopK(per_head=True), (per_page(1, 1),), "one score for each query head"),
        (select.TopK(), (per_row(1, 1),), "expected a value in format RAGGED"),
        (select.Union(), (per_page(1, 1), per_page(1, 1)), "expected bools"),
        (reduce.ArgTop(9), (per_row(1, 8),), "at least k=9 entries"),
        (layout.Concat(1), (per_row(1, 8), per_row(1, 7)), "entries, as the other"),
    ],
)
def test_operands_that_do_not_fit_are_refused_with_what_was_expected(
    op: Op, inputs: tuple[ValueType, ...], found: str
) -> None:
    with pytest.raises(OperandError, match=found) as caught:
        op.result_type(inputs, SCOPE)
    assert caught.value.op == op.name


def test_weights_with_heads_are_taken_head_by_head() -> None:
    weights = ValueType(FORMAT.PARAMETER, Leading.NONE, (4, 32, 64), DType.FLOAT32)
    result = linear.GeMM().result_type((per_row(8, 64), weights), SCOPE)
    assert result.shape == (4 * 32, 2)
    with pytest.raises(OperandError, match="rows of 4 heads"):
        linear.GeMM().result_type((per_row(6, 64), weights), SCOPE)


def test_two_ops_of_one_name_are_refused() -> None:
    with pytest.raises(RegistryError, match="two 'Relu'"):
        build_table([unary.Relu, unary.Relu])


def test_a_variable_that_nobody_declared_is_refused_with_those_that_are() -> None:
    scope = Scope(Side.INDEXER, SCOPE.geometry, {"q": per_row(4, 64)})
    with pytest.raises(OperandError, match="found 'k', expected one of q"):
        EXAMPLES[2].op.result_type((), scope)
