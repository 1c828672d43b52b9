from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, of_python, round_float, ulp, wrap_int
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    block,
    blocks_of,
    bound_for,
    charges_of,
    evaluate,
    random_block,
    result_of,
    seeds,
)
from tilewright.device.vector import COST_TABLE
from tilewright.errors import InternalError, KernelError, KernelTypeError, RegistryError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import (
    DTYPES,
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Bound, Charge, GemmCharge, Meaning, build_table

FLOAT_OPS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "div_rn": np.divide,
    "fdiv": np.divide,
    "mod": np.mod,
    "remainder": np.fmod,
}
ATTRIBUTES: dict[str, tuple[object, ...]] = {
    "fdiv": (False, False),
    "maximum": (False,),
    "minimum": (False,),
    "clamp": (False,),
}


def trunc_div(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def trunc_mod(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * trunc_div(a, b)


INTEGER_OPS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: 0 if b == 0 else a // b,
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "quotient": trunc_div,
    "remainder": trunc_mod,
    "maximum": max,
    "minimum": min,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def operands_of(dtype: DType, count: int, seed: int = 3) -> tuple[Array, ...]:
    return blocks_of(dtype, np.random.default_rng(seed), count)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float_arithmetic_is_exact_arithmetic_rounded_once(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = result_of(op, left, right, attributes=ATTRIBUTES.get(op, ()))
    with np.errstate(all="ignore"):
        exact = FLOAT_OPS[op](as_float64(left), as_float64(right))
    narrow_division = op in ("div", "fdiv", "mod", "remainder") and dtype is not float64
    result = float32 if narrow_division else dtype
    expected = round_float(exact, result)
    np.testing.assert_array_equal(as_float64(found), expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.signbit(as_float64(found))[numbers], np.signbit(expected)[numbers]
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_arithmetic_is_exact_and_wraps(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = result_of(op, left, right, attributes=ATTRIBUTES.get(op, ()))
    np.testing.assert_array_equal(
        found.astype(object), of_python(INTEGER_OPS[op], dtype, left, right)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_are_those_of_the_values(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    wide = object if dtype.is_int() else np.float64
    expected = COMPARISONS[op](left.astype(wide), right.astype(wide)).astype(np.bool_)
    np.testing.assert_array_equal(result_of(op, left, right), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_divide_to_float32(dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    with np.errstate(all="ignore"):
        expected = left.astype(np.float32) / right.astype(np.float32)
    np.testing.assert_array_equal(result_of("div", left, right), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_without_propagation_a_number_beats_nan(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    function = np.fmax if op == "maximum" else np.fmin
    with np.errstate(all="ignore"):
        expected = function(as_float64(left), as_float64(right))
    np.testing.assert_array_equal(
        as_float64(result_of(op, left, right, attributes=(False,))), expected
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_with_propagation_nan_wins_and_zeros_have_an_order(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = as_float64(result_of(op, left, right, attributes=(True,)))
    a, b = np.broadcast_arrays(as_float64(left), as_float64(right))
    nan = np.isnan(a) | np.isnan(b)
    np.testing.assert_array_equal(np.isnan(found), nan)
    above = (a > b) | ((a == b) & ~np.signbit(a))  # +0 is above -0
    greatest = np.where(above == (op == "maximum"), a, b)
    np.testing.assert_array_equal(found[~nan], greatest[~nan])
    np.testing.assert_array_equal(np.signbit(found)[~nan], np.signbit(greatest)[~nan])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("propagate_nan", [False, True])
def test_clamp_is_a_maximum_and_then_a_minimum(dtype: DType, propagate_nan: bool) -> None:
    value, low, high = operands_of(dtype, 3)
    raised = result_of("maximum", value, low, attributes=(propagate_nan,))
    expected = result_of("minimum", raised, high, attributes=(propagate_nan,))
    found = result_of("clamp", value, low, high, attributes=(propagate_nan,))
    wide = object if dtype.is_int() else np.float64
    np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_takes_bits_as_they_are(dtype: DType) -> None:
    rng = np.random.default_rng(5)
    left, right = random_block(dtype, (16, 8), rng), random_block(dtype, (8,), rng)
    condition = rng.integers(0, 2, (16, 1)).astype(np.bool_)
    found = result_of("where", condition, left, right)
    expected = np.where(condition, left, right)
    assert found.tobytes() == expected.tobytes()


def test_where_takes_any_integer_as_a_condition() -> None:
    found = result_of("where", np.array([0, 2, -1], np.int32), np.ones(3), np.zeros(3))
    np.testing.assert_array_equal(found, [0, 1, 1])


@given(seed=seeds, data=st.data())
def test_mixed_dtypes_compute_as_if_cast_first(seed: int, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(["add", "sub", "mul", "lt", "maximum", "where"]))
    left_type, right_type = data.draw(st.sampled_from(COMPATIBLE))
    rng = np.random.default_rng(seed)
    left, right = block(left_type, rng, 2), block(right_type, rng, 2)
    length = min(len(left), len(right))
    left, right = left[:length], right[:length]
    attributes = ATTRIBUTES.get(op, ())
    sides = (left, right)
    condition = (rng.integers(0, 2, length).astype(np.bool_),) if op == "where" else ()
    bound = bound_for("add", left, right)
    common = bound.type.dtype  # type: ignore[union-attr]
    cast = [result_of("cast", each, attributes=(common, None)) for each in sides]
    found = result_of(op, *condition, *sides, attributes=attributes)
    expected = result_of(op, *condition, *cast, attributes=attributes)
    wide = np.float64 if found.dtype.kind in "fV" else object
    np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))


COMPATIBLE = [
    (left, right)
    for left, right in product(DTYPES, DTYPES)
    if not (left.is_fp8() and right.is_int()) and not (right.is_fp8() and left.is_int())
]


@given(seed=seeds, data=st.data())
def test_operands_broadcast_as_numpy_does(seed: int, data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shapes = []
    for _ in range(2):
        keep = data.draw(st.lists(st.booleans(), min_size=len(extents), max_size=len(extents)))
        shape = [extent if kept else 1 for extent, kept in zip(extents, keep, strict=True)]
        shapes.append(tuple(shape[data.draw(st.integers(0, len(extents))) :]))
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    left, right = np.asarray(left), np.asarray(right)
    np.testing.assert_array_equal(result_of("add", left, right), left + right)


def test_shapes_that_do_not_fit_are_refused_with_the_axis() -> None:
    left, right = np.zeros((4, 8), np.float32), np.zeros((3, 8), np.float32)
    with pytest.raises(
        KernelTypeError, match=r"add\(fp32\[4, 8\], fp32\[3, 8\]\).*axis 0 has 4 and 3"
    ):
        bound_for("add", left, right)


def test_float32_arithmetic_is_numpys_own_function() -> None:
    tile = block_type(float32, (64, 64))
    for op, function in (("add", np.add), ("mul", np.multiply), ("maximum", np.fmax)):
        assert MEANINGS[op].bind((tile, tile), ATTRIBUTES.get(op, ())).run is function


def test_narrow_floats_are_charged_as_float32() -> None:
    tile = block_type(bfloat16, (64, 64))
    bound = MEANINGS["add"].bind((tile, block_type(bfloat16, ())))
    assert bound.charges == (Charge("add", 4096, float32),)


@pytest.mark.parametrize("pair", [(int32, uint32), (uint8, int8)])
@pytest.mark.parametrize("op", ["div", "floordiv", "mod", "quotient", "remainder"])
def test_division_of_mixed_signs_is_refused(op: str, pair: tuple[DType, DType]) -> None:
    with pytest.raises(KernelTypeError, match="integers of one signedness"):
        MEANINGS[op].bind(tuple(block_type(dtype, (4,)) for dtype in pair))


def test_floor_division_of_floats_is_refused() -> None:
    with pytest.raises(
        KernelTypeError, match=r"floordiv\(fp32\[4\], fp32\[4\]\), expected integers"
    ):
        MEANINGS["floordiv"].bind((block_type(float32, (4,)),) * 2)


def test_fdiv_refuses_what_contradicts_itself() -> None:
    single, half = block_type(float32, (4,)), block_type(float64, (4,))
    with pytest.raises(KernelError, match="one way to round"):
        MEANINGS["fdiv"].bind((single, single), (True, True))
    with pytest.raises(KernelTypeError, match="float32 operands for approx"):
        MEANINGS["fdiv"].bind((half, half), (False, True))


def test_arithmetic_on_one_bit_wraps() -> None:
    bits = np.array([False, True])
    left, right = bits[:, None], bits[None, :]
    np.testing.assert_array_equal(result_of("add", left, right), left ^ right)
    np.testing.assert_array_equal(result_of("sub", left, right), left ^ right)
    np.testing.assert_array_equal(result_of("mul", left, right), left & right)


@pytest.mark.parametrize("dtype", [float16, float8e4nv, float8e5, bfloat16], ids=str)
def test_a_sum_beyond_the_range_overflows_as_the_format_does(dtype: DType) -> None:
    largest = np.array(
        [{float16: 65504.0, float8e4nv: 448.0, float8e5: 57344.0}.get(dtype, 3.3e38)]
    )
    largest = largest.astype(dtype.storage)
    found = as_float64(result_of("add", largest, largest))
    assert found == (448.0 if dtype is float8e4nv else np.inf)


def test_int1_is_unsigned_beside_integers() -> None:
    found = result_of("add", np.array([True]), np.array([-3], np.int8))
    assert found.dtype == np.int8
    assert found == -2
    assert bound_for("add", np.array([True]), np.array([1], np.int32)).type is block_type(
        int32, (1,)
    )
    assert bound_for("lt", np.array([True]), np.array([1], np.int32)).type is block_type(int1, (1,))


BITWISE: dict[str, Callable[..., int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", BITWISE)
def test_bits_combine_as_pythons_do(op: str, dtype: DType) -> None:
    left, right = blocks_of(dtype, np.random.default_rng(7), 2)
    expected = of_python(BITWISE[op], dtype, left, right)
    np.testing.assert_array_equal(result_of(op, left, right).astype(object), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_not_turns_every_bit(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(7))
    expected = of_python(lambda a: ~a, dtype, values)
    np.testing.assert_array_equal(result_of("not", values).astype(object), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_drop_bits_and_end_in_zero_or_the_sign(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(7), 2)
    most = min(2 * dtype.primitive_bitwidth, dtype.get_int_max_value())
    amounts = np.arange(most + 1).astype(dtype.storage)
    values, amounts = values[:, None], amounts[None, :]
    shl = of_python(lambda a, b: a << b, dtype, values, amounts)
    shr = of_python(lambda a, b: a >> b, dtype, values, amounts)
    np.testing.assert_array_equal(result_of("shl", values, amounts).astype(object), shl)
    np.testing.assert_array_equal(result_of("shr", values, amounts).astype(object), shr)


def test_a_shift_by_a_negative_amount_drops_all_bits() -> None:
    values, amount = np.array([5, -5], np.int32), np.array([-1, -1], np.int32)
    np.testing.assert_array_equal(result_of("shl", values, amount), [0, 0])
    np.testing.assert_array_equal(result_of("shr", values, amount), [0, -1])


def test_the_left_operand_says_whether_a_shift_keeps_the_sign() -> None:
    negative, amount = np.array([-8], np.int32), np.array([1], np.uint32)
    assert result_of("shr", negative, amount) == wrap_int(-4, uint32)
    unsigned, signed_amount = np.array([0xF0], np.uint8), np.array([4], np.int32)
    assert result_of("shr", unsigned, signed_amount) == 0xF


@pytest.mark.parametrize("dtype", [int32, uint32, int64, uint64], ids=str)
@given(data=st.data())
def test_umulhi_is_the_upper_half_of_the_whole_product(dtype: DType, data: st.DataObject) -> None:
    bits = dtype.primitive_bitwidth
    numbers = st.integers(0, 2**bits - 1)
    left, right = data.draw(numbers), data.draw(numbers)
    unsigned = np.dtype(f"uint{bits}")
    arrays = (np.array([each], unsigned).view(dtype.storage) for each in (left, right))
    found = result_of("umulhi", *arrays)
    assert found.view(unsigned) == left * right >> bits


def test_umulhi_of_narrow_integers_is_refused() -> None:
    values = np.zeros(4, np.int16)
    with pytest.raises(KernelTypeError, match="integers of 32 or 64 bits"):
        bound_for("umulhi", values, values)


@pytest.mark.parametrize("op", ["and", "or", "xor", "shl", "shr", "not"])
def test_floats_have_no_bits_to_combine(op: str) -> None:
    values = [np.zeros(4, np.float32)] * MEANINGS[op].num_operands[0]
    with pytest.raises(KernelTypeError, match="expected integers"):
        bound_for(op, *values)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logic_takes_everything_but_zero_as_true(dtype: DType) -> None:
    left, right = blocks_of(dtype, np.random.default_rng(7), 2)
    a, b = left.astype(np.float64) != 0, right.astype(np.float64) != 0
    np.testing.assert_array_equal(result_of("logical_and", left, right), a & b)
    np.testing.assert_array_equal(result_of("logical_or", left, right), a | b)
    np.testing.assert_array_equal(result_of("logical_not", left), ~a)
    assert bound_for("logical_and", left, right).type.dtype is int1  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_sigmoid_is_rounded_once(dtype: DType) -> None:
    values = np.linspace(-20, 20, 64).astype(dtype.storage)
    exact = 1 / (1 + np.exp(-as_float64(values)))
    found = as_float64(result_of("sigmoid", values))
    assert np.all(np.abs(found - round_float(exact, dtype)) <= 4 * ulp(exact, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_a_softmax_of_narrow_floats_is_float32(dtype: DType, axis: int | None) -> None:
    values = np.random.default_rng(1).normal(0, 3, (8, 16)).astype(dtype.storage)
    found = result_of("softmax", values, attributes=(axis,))
    assert found.dtype == (np.float64 if dtype is float64 else np.float32)
    along = 0 if axis is None else axis
    powers = np.exp(as_float64(values) - as_float64(values).max(along, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(along, keepdims=True), rtol=2e-6)


def test_a_softmax_is_charged_by_its_parts() -> None:
    ops = [each.op for each in charges_of("softmax", np.zeros((8, 16)), attributes=(1,))]
    assert ops == ["max", "sub", "exp", "sum", "div"]


@given(value=st.integers(0, 2**30), divisor=st.integers(1, 2**20))
def test_cdiv_rounds_up(value: int, divisor: int) -> None:
    found = result_of("cdiv", np.array([value], np.int32), np.array([divisor], np.int32))
    assert found == -(-value // divisor)


def test_cdiv_of_floats_is_refused() -> None:
    with pytest.raises(KernelTypeError, match="expected integers"):
        bound_for("cdiv", np.zeros(4, np.float32), np.ones(4, np.float32))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_swizzle_walks_groups_of_rows_column_by_column(
    rows: int, columns: int, group: int
) -> None:
    i, j = np.mgrid[:rows, :columns].astype(np.int32)
    sizes = [np.array(each, np.int32) for each in (rows, columns, group)]
    new_i, new_j = evaluate(bound_for("swizzle2d", i, j, *sizes), i, j, *sizes)
    expected = [
        (row, column)
        for first in range(0, rows, group)
        for column in range(columns)
        for row in range(first, min(first + group, rows))
    ]
    assert list(zip(new_i.ravel().tolist(), new_j.ravel().tolist(), strict=True)) == expected


OF_ANY_OP: dict[str, object] = {
    "axis": -1,
    "axes": (0, 1),
    "combine": lambda left, right: left + right,
    "end": 4,
    "k": 4,
    "left_format": "e4m3",
    "left_k_pack": True,
    "n_rounds": 10,
    "num_bins": 4,
    "right_format": "e4m3",
    "right_k_pack": True,
    "shape": (4, 4),
    "start": 0,
    "value": 1,
}
OPTIONAL = ("dtype", "rounding", "out_dtype", "input_precision", "max_num_imprecise_acc")
NAMED_DTYPE = ("cast", "bitcast", "full")
OPERAND_SHAPES: dict[str, tuple[int, ...]] = {
    "split": (4, 2),
    "histogram": (16,),
    "squeeze": (4, 1),
}
SCALAR_FIRST = ("philox", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x")


def attribute(op: str, name: str) -> object:
    if name in OPTIONAL:
        return float32 if op in NAMED_DTYPE and name == "dtype" else None
    return 0 if op == "expand_dims" else OF_ANY_OP.get(name, False)


def bind_somehow(meaning: Meaning) -> Bound:
    """With the first dtype that the op takes."""
    attributes = tuple(attribute(meaning.name, name) for name in meaning.attributes)
    shape = OPERAND_SHAPES.get(meaning.name, (4, 4))
    for dtype in (float32, *DTYPES):
        types = [block_type(dtype, shape)] * meaning.num_operands[0]
        if meaning.name in SCALAR_FIRST:
            types[0] = block_type(dtype, ())
        if meaning.name == "gather":
            types[1] = block_type(int32, shape)
        try:
            return meaning.bind(tuple(types), attributes)
        except KernelTypeError:
            continue
    raise AssertionError(meaning.name)


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_every_charge_is_a_line_of_the_cost_table(name: str) -> None:
    for charge in bind_somehow(MEANINGS[name]).charges:
        assert isinstance(charge, GemmCharge) or charge.op in COST_TABLE


def test_a_name_has_one_meaning() -> None:
    with pytest.raises(RegistryError, match="two meanings of 'add'"):
        build_table((MEANINGS["add"], MEANINGS["add"]))


def test_the_number_of_operands_and_attributes_is_checked() -> None:
    tile = block_type(float32, (4,))
    with pytest.raises(KernelTypeError, match=r"add\(fp32\[4\]\), expected 2 operands"):
        MEANINGS["add"].bind((tile,))
    with pytest.raises(InternalError, match="expected 1: axis"):
        MEANINGS["flip"].bind((tile,))


@given(seeds)
def test_what_is_no_command_costs_nothing(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32)
    bound = bound_for("reshape", values, attributes=((16,),))
    assert bound.charges == ()
