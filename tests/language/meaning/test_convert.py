from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, round_float, wrap_int
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    block,
    bound_for,
    charges_of,
    result_of,
    seeds,
)
from tilewright.errors import KernelError, KernelTypeError
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
    uint16,
)
from tilewright.language.meaning.bound import Array

PAIRS = {
    (floats, to_floats): list(
        product(FLOATS if floats else INTEGERS, FLOATS if to_floats else INTEGERS)
    )
    for floats, to_floats in product((True, False), repeat=2)
}

SAME_WIDTH = [
    (source, target)
    for source, target in product(DTYPES, DTYPES)
    if source.primitive_bitwidth == target.primitive_bitwidth
]


def cast(array: Array, dtype: DType, rounding: str | None = None) -> Array:
    return result_of("cast", array, attributes=(dtype, rounding))


def name(pair: tuple[DType, DType]) -> str:
    return f"{pair[0]}-{pair[1]}"


@pytest.mark.parametrize("pair", PAIRS[True, True], ids=name)
def test_floats_become_floats_by_one_rounding(pair: tuple[DType, DType]) -> None:
    source, target = pair
    values = block(source, np.random.default_rng(2), rows=64)
    expected = round_float(as_float64(values), target)
    if source is target:
        expected = as_float64(values)
    np.testing.assert_array_equal(as_float64(cast(values, target)), expected)
    signs = np.signbit(as_float64(cast(values, target)))
    keeps_sign = ~np.isnan(expected)
    np.testing.assert_array_equal(signs[keeps_sign], np.signbit(expected)[keeps_sign])


@pytest.mark.parametrize("pair", PAIRS[False, True], ids=name)
def test_integers_become_floats_by_one_rounding(pair: tuple[DType, DType]) -> None:
    source, target = pair
    values = block(source, np.random.default_rng(2), rows=64)
    found = cast(values, target)
    for number, float_found in zip(values.tolist(), as_float64(found).tolist(), strict=True):
        assert float_found == nearest_float(int(number), target)


def nearest_float(number: int, dtype: DType) -> float:
    """By integers alone: the float of ``dtype`` nearest to a whole number, ties to even."""
    magnitude = abs(number)
    surplus = max(0, magnitude.bit_length() - dtype.fp_mantissa_width - 1)
    kept, rest = divmod(magnitude, 2**surplus)
    half = 2**surplus // 2
    kept += rest > half or (0 < rest == half and kept % 2)
    rounded = float(kept * 2**surplus) * (-1 if number < 0 else 1)
    return float(round_float(np.array(rounded), dtype))  # only overflow is left to it


@pytest.mark.parametrize("pair", PAIRS[True, False], ids=name)
def test_floats_become_integers_by_truncation_and_saturate(pair: tuple[DType, DType]) -> None:
    source, target = pair
    values = block(source, np.random.default_rng(2), rows=64)
    found = cast(values, target)
    for number, integer in zip(as_float64(values).tolist(), found.tolist(), strict=True):
        assert int(integer) == saturated(number, target)


@pytest.mark.parametrize("target", [dtype for dtype in INTEGERS if dtype is not int1], ids=str)
@pytest.mark.parametrize("source", [float32, float64], ids=str)
def test_floats_that_fit_are_truncated_and_one_that_does_not_saturates(
    source: DType, target: DType
) -> None:
    low, high = float(target.get_int_min_value()), float(target.get_int_max_value())
    inside = np.array([0.0, -0.9, 0.9, 1.5, low + 0.4, low - 0.4, high - 0.4, high + 0.4])
    below, above = (np.append(inside, end * 1.5) for end in (min(low, -2.0), high))
    for values in (inside[:4], inside, below, above):  # the whole block decides how it is done
        cast_to = values.astype(source.storage)
        found = cast(cast_to, target)
        expected = [saturated(each, target) for each in cast_to.tolist()]
        assert [int(each) for each in found.tolist()] == expected


def saturated(number: float, dtype: DType) -> int:
    if dtype is int1:
        return int(number != 0)
    if np.isnan(number):
        return 0
    if np.isinf(number):
        return dtype.get_int_max_value() if number > 0 else dtype.get_int_min_value()
    return min(max(int(number), dtype.get_int_min_value()), dtype.get_int_max_value())


@pytest.mark.parametrize("pair", PAIRS[False, False], ids=name)
def test_integers_become_integers_by_wrapping(pair: tuple[DType, DType]) -> None:
    source, target = pair
    values = block(source, np.random.default_rng(2), rows=64)
    for number, found in zip(values.tolist(), cast(values, target).tolist(), strict=True):
        expected = int(number) != 0 if target is int1 else wrap_int(int(number), target)
        assert int(found) == expected


@pytest.mark.parametrize("target", [float32, float16, bfloat16, float8e4nv, float8e5], ids=str)
@given(seed=seeds)
def test_rounding_toward_zero_never_grows_and_stops_at_the_next_float(
    target: DType, seed: int
) -> None:
    values = block(float64, np.random.default_rng(seed))
    truncated = as_float64(cast(values, target, "rtz"))
    nearest = as_float64(cast(values, target))
    finite = np.isfinite(values)
    assert np.all(np.abs(truncated[finite]) <= np.abs(values[finite]))
    # either the nearest float already, or the one before it
    grew = finite & (np.abs(nearest) > np.abs(values))
    np.testing.assert_array_equal(truncated[~grew], nearest[~grew])
    bits = np.dtype(f"uint{target.primitive_bitwidth}")
    steps = cast(values, target).view(bits) - cast(values, target, "rtz").view(bits)
    np.testing.assert_array_equal(steps, grew.astype(bits))


@pytest.mark.parametrize("target", [float16, bfloat16, float8e4nv, float8e5], ids=str)
@given(seed=seeds)
def test_casts_from_float32_are_those_of_torch(target: DType, seed: int) -> None:
    values = block(float32, np.random.default_rng(seed))
    theirs = torch.from_numpy(values).to(getattr(torch, target.storage.name)).to(torch.float64)
    np.testing.assert_array_equal(as_float64(cast(values, target)), theirs.numpy())


def test_a_float64_is_not_rounded_twice_on_its_way() -> None:
    just_above_a_tie = np.array([1 + 2.0**-8 + 2.0**-40])
    assert as_float64(cast(just_above_a_tie, bfloat16)) == 1 + 2.0**-7


def test_a_large_int64_is_not_rounded_twice_on_its_way() -> None:
    just_above_a_tie = np.array([2**62 + 2**54 + 1])
    assert as_float64(cast(just_above_a_tie, bfloat16)) == 2.0**62 + 2.0**55


@pytest.mark.parametrize("pair", SAME_WIDTH, ids=name)
def test_a_bitcast_keeps_every_bit(pair: tuple[DType, DType]) -> None:
    values = block(pair[0], np.random.default_rng(1))
    there = result_of("bitcast", values, attributes=(pair[1],))
    assert there.tobytes() == values.tobytes()
    assert result_of("bitcast", there, attributes=(pair[0],)).tobytes() == values.tobytes()


def test_a_bitcast_of_a_transposed_view_reads_its_elements() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3).T
    bits = result_of("bitcast", values, attributes=(int32,))
    np.testing.assert_array_equal(bits.view(np.float32), values)


def test_a_bitcast_to_another_width_is_refused() -> None:
    with pytest.raises(KernelTypeError, match=r"bitcast\(fp32\[4\]\).*16 bits"):
        bound_for("bitcast", np.zeros(4, np.float32), attributes=(uint16,))


@pytest.mark.parametrize("pair", [(float32, int8), (float16, float32), (bfloat16, float16)])
def test_a_rounding_is_refused_where_nothing_narrows(pair: tuple[DType, DType]) -> None:
    values = np.zeros(4, pair[0].storage)
    with pytest.raises(KernelTypeError, match="a cast to a narrower float"):
        bound_for("cast", values, attributes=(pair[1], "rtz"))


def test_an_unknown_rounding_is_refused() -> None:
    with pytest.raises(KernelError, match="fp_downcast_rounding='up'"):
        bound_for("cast", np.zeros(4, np.float32), attributes=(float16, "up"))


@given(st.sampled_from(DTYPES))
def test_a_cast_to_the_same_dtype_is_no_command(dtype: DType) -> None:
    assert bound_for("cast", np.zeros(4, dtype.storage), attributes=(dtype, None)).charges == ()


def test_a_cast_is_charged_in_the_wider_dtype() -> None:
    (charge,) = charges_of("cast", np.zeros(4, np.float16), attributes=(int64, None))
    assert (charge.op, charge.elements, charge.dtype) == ("cast", 4, int64)
