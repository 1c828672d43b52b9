from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, ulp, wrap_int
from tests.language.meaning.values import bound_for, result_of, seeds
from tilewright.device.gemm import GEMM_PACE
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int4,
    int8,
    int32,
    uint8,
)
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Charge, GemmCharge

PLAIN = (None, None, None)
FLOATS = (float64, float32, float16, bfloat16, float8e4nv, float8e5)


def matrices(dtype: DType, seed: int, m: int, n: int, k: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    return left.astype(dtype.storage), right.astype(dtype.storage)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_products_are_summed_in_f32_and_rounded_once(dtype: DType, accumulate: bool) -> None:
    left, right = matrices(dtype, 19, 32, 16, 64)
    result = float64 if dtype is float64 else float32
    added = np.random.default_rng(1).normal(size=(32, 16)).astype(result.storage)
    operands = (left, right, added) if accumulate else (left, right)
    found = result_of("dot", *operands, attributes=PLAIN)
    assert found.dtype == result.storage
    exact = as_float64(left) @ as_float64(right) + (added if accumulate else 0)
    row_norm = np.abs(as_float64(left)) @ np.abs(as_float64(right)) + np.abs(added)
    assert np.all(np.abs(found - exact) <= row_norm * (1e-15 if result is float64 else 1e-6))


@pytest.mark.parametrize("dtype", [float16, float8e4nv, float8e5], ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_a_float16_result_is_rounded_from_f32(dtype: DType, accumulate: bool) -> None:
    left, right = matrices(dtype, 23, 8, 8, 32)
    added = np.ones((8, 8), np.float16)
    operands = (left, right, added) if accumulate else (left, right)
    found = as_float64(result_of("dot", *operands, attributes=(None, None, float16)))
    exact = as_float64(left) @ as_float64(right) + (1 if accumulate else 0)
    assert np.all(np.abs(found - exact) <= ulp(exact, float16) / 2 + 1e-5)


@pytest.mark.parametrize("dtype", [int8, uint8], ids=str)
@pytest.mark.parametrize("k", [16, 1024, 2048])
@given(seed=seeds)
def test_products_of_bytes_are_exact(dtype: DType, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    left, right = (
        rng.choice([low, high, 1], shape).astype(dtype.storage) for shape in ((2, k), (k, 3))
    )
    added = rng.integers(-(2**31), 2**31, (2, 3)).astype(np.int32)
    found = result_of("dot", left, right, added, attributes=PLAIN)
    exact = left.astype(object) @ right.astype(object) + added
    assert found.ravel().tolist() == [wrap_int(int(each), int32) for each in exact.ravel()]


@given(seed=seeds, batch=st.lists(st.integers(1, 3), min_size=1, max_size=2))
def test_batches_multiply_one_by_one(seed: int, batch: list[int]) -> None:
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(*batch, 4, 8)).astype(np.float32)
    right = rng.normal(size=(*batch, 8, 2)).astype(np.float32)
    found = result_of("dot", left, right, attributes=PLAIN)
    for index in np.ndindex(*batch):
        alone = result_of("dot", left[index], right[index], attributes=PLAIN)
        np.testing.assert_array_equal(found[index], alone)


def test_a_transposed_view_multiplies_as_its_copy_does() -> None:
    left, right = matrices(float16, 29, 16, 16, 16)
    found = result_of("dot", left, right.T, attributes=PLAIN)
    np.testing.assert_array_equal(found, result_of("dot", left, right.T.copy(), attributes=PLAIN))


def test_two_kinds_of_fp8_multiply() -> None:
    left, right = matrices(float8e4nv, 31, 8, 8, 16)
    other = right.astype(np.float32).astype(float8e5.storage)
    found = result_of("dot", left, other, attributes=PLAIN)
    np.testing.assert_allclose(found, as_float64(left) @ as_float64(other), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", [None, "ieee", "tf32", "TF32x3", "bf16x3"])
def test_no_precision_gives_less_than_f32(precision: str | None) -> None:
    left, right = matrices(float32, 37, 8, 8, 16)
    found = result_of("dot", left, right, attributes=(precision, None, None))
    np.testing.assert_array_equal(found, left @ right)


def test_float32_products_are_numpys_own_function() -> None:
    tile = block_type(float32, (64, 64))
    assert MEANINGS["dot"].bind((tile, tile), PLAIN).run is np.matmul


def test_the_gemm_unit_is_charged_by_the_dtype_that_it_takes() -> None:
    left, right = block_type(float16, (3, 2, 32, 64)), block_type(float16, (3, 2, 64, 16))
    assert MEANINGS["dot"].bind((left, right), PLAIN).charges == (
        GemmCharge(32, 16, 64, 6, float16),
    )


@pytest.mark.parametrize("dtype", [int8, uint8, float8e4nv, float8e5, float16, bfloat16, float32])
def test_what_is_charged_to_the_gemm_unit_is_what_it_takes(dtype: DType) -> None:
    tile = block_type(dtype, (8, 8))
    (charge,) = MEANINGS["dot"].bind((tile, tile), PLAIN).charges
    assert isinstance(charge, GemmCharge)
    assert charge.dtype.device_name in GEMM_PACE


def test_float64_is_charged_to_the_vector_unit() -> None:
    tile = block_type(float64, (8, 8))
    assert MEANINGS["dot"].bind((tile, tile), PLAIN).charges == (Charge("fma", 512, float64),)


Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4,), (4,), "equal rank, 2 or more"),
        ((4, 8), (2, 8, 4), "equal rank, 2 or more"),
        ((4, 8), (4, 8), r"\(..., m, k\) and \(..., k, n\)"),
        ((2, 4, 8), (3, 8, 4), r"\(..., m, k\) and \(..., k, n\)"),
    ],
)
def test_shapes_that_do_not_multiply_are_refused(left: Shape, right: Shape, message: str) -> None:
    with pytest.raises(KernelTypeError, match=message):
        bound_for("dot", np.zeros(left, np.float32), np.zeros(right, np.float32), attributes=PLAIN)


def test_dtypes_that_do_not_multiply_are_refused() -> None:
    shape = (4, 4)
    mixed = (block_type(float16, shape), block_type(float32, shape))
    with pytest.raises(KernelTypeError, match="two operands of one dtype"):
        MEANINGS["dot"].bind(mixed, PLAIN)
    with pytest.raises(KernelTypeError, match="int8, uint8 or floats"):
        MEANINGS["dot"].bind((block_type(int4, shape),) * 2, PLAIN)
    half = (block_type(float16, shape),) * 2
    with pytest.raises(KernelTypeError, match="out_dtype float32 or float16"):
        MEANINGS["dot"].bind(half, (None, None, bfloat16))
    accumulator = (*half, block_type(float16, shape))
    with pytest.raises(KernelTypeError, match=r"an accumulator fp32\[4, 4\]"):
        MEANINGS["dot"].bind(accumulator, (None, None, float32))


def test_an_accumulator_has_the_shape_of_the_product() -> None:
    types = (block_type(float32, (4, 8)), block_type(float32, (8, 2)), block_type(float32, (4, 4)))
    with pytest.raises(KernelTypeError, match=r"an accumulator fp32\[4, 2\]"):
        MEANINGS["dot"].bind(types, PLAIN)


def test_precisions_nobody_knows_are_refused() -> None:
    tile = (block_type(float8e5, (4, 4)),) * 2
    with pytest.raises(KernelError, match="input_precision='half'"):
        MEANINGS["dot"].bind(tile, ("half", None, None))
    with pytest.raises(KernelError, match="at most k = 4"):
        MEANINGS["dot"].bind(tile, (None, 8, None))


STORAGE = {"e4m3": float8e4nv, "e5m2": float8e5, "bf16": bfloat16, "fp16": float16}
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
M, N, K = 16, 8, 64


def operand(name: str, shape: tuple[int, ...], seed: int) -> Array:
    values = np.random.default_rng(seed).normal(size=shape)
    return values.astype(STORAGE[name].storage)


def scales(rows: int, seed: int, groups: int = K // 32) -> Array:
    return np.random.default_rng(seed).integers(120, 135, (rows, groups)).astype(np.uint8)


def factors(scale: Array) -> Array:
    return np.repeat(2.0 ** (scale.astype(np.float64) - 127), K // scale.shape[-1], axis=-1)


def attributes(left: str, right: str, scaled: tuple[bool, bool], **named: Any) -> tuple[Any, ...]:
    packs = (named.get("left_k_pack", True), named.get("right_k_pack", True))
    return (left, right, *scaled, *packs, named.get("out_dtype"))


@pytest.mark.parametrize("left", STORAGE)
@pytest.mark.parametrize("right", STORAGE)
@pytest.mark.parametrize("scaled", [(True, True), (True, False), (False, True), (False, False)])
def test_operands_are_scaled_by_groups_of_k(
    left: str, right: str, scaled: tuple[bool, bool]
) -> None:
    a, b = operand(left, (M, K), 1), operand(right, (K, N), 2)
    a_scale, b_scale = scales(M, 3), scales(N, 4)
    arrays = [a, *([a_scale] if scaled[0] else []), b, *([b_scale] if scaled[1] else [])]
    found = result_of("dot_scaled", *arrays, attributes=attributes(left, right, scaled))
    wide_a = as_float64(a) * (factors(a_scale) if scaled[0] else 1)
    wide_b = as_float64(b) * (factors(b_scale).T if scaled[1] else 1)
    error = np.abs(found - wide_a @ wide_b)
    assert np.all(error <= 1e-6 * (np.abs(wide_a) @ np.abs(wide_b)))


def pack(codes: Array, axis: int) -> Array:
    """Two codes a byte, the first in the low half."""
    first, second = (np.take(codes, range(n, codes.shape[axis], 2), axis) for n in (0, 1))
    return np.asarray(first | second << 4).astype(np.uint8)


def decode(codes: Array) -> Array:
    return np.asarray(np.where(codes & 8, -1, 1) * np.array(E2M1)[codes & 7])


@pytest.mark.parametrize("left_k_pack", [True, False])
@pytest.mark.parametrize("right_k_pack", [True, False])
def test_codes_of_four_bits_are_packed_along_k_or_across(
    left_k_pack: bool, right_k_pack: bool
) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 16, (M, K)), rng.integers(0, 16, (K, N))
    a_scale, b_scale = scales(M, 6), scales(N, 7)
    packed = (pack(a, 1 if left_k_pack else 0), pack(b, 0 if right_k_pack else 1))
    given = attributes(
        "e2m1", "e2m1", (True, True), left_k_pack=left_k_pack, right_k_pack=right_k_pack
    )
    found = result_of("dot_scaled", packed[0], a_scale, packed[1], b_scale, attributes=given)
    expected = (decode(a) * factors(a_scale)) @ (decode(b) * factors(b_scale).T)
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # sums of few bits: nearly exact


def test_bits_may_come_as_unsigned_integers() -> None:
    a, b = operand("e4m3", (M, K), 1), operand("bf16", (K, N), 2)
    plain = attributes("e4m3", "bf16", (False, False))
    as_bits = (a.view(np.uint8), b.view(np.uint16))
    np.testing.assert_array_equal(
        result_of("dot_scaled", *as_bits, attributes=plain),
        result_of("dot_scaled", a, b, attributes=plain),
    )


def test_batches_and_an_accumulator() -> None:
    a, b = operand("e5m2", (3, M, K), 1), operand("e5m2", (3, K, N), 2)
    scale = np.full((3, M, 2), 127, np.uint8)
    added = np.random.default_rng(1).normal(size=(3, M, N)).astype(np.float32)
    given = attributes("e5m2", "e5m2", (True, False))
    found = result_of("dot_scaled", a, scale, b, added, attributes=given)
    np.testing.assert_allclose(found, as_float64(a) @ as_float64(b) + added, rtol=1e-5, atol=1e-5)


def test_the_largest_scale_is_nan() -> None:
    a, b = operand("e4m3", (M, K), 1), operand("e4m3", (K, N), 2)
    scale = np.full((M, 2), 255, np.uint8)
    given = attributes("e4m3", "e4m3", (True, False))
    assert np.isnan(result_of("dot_scaled", a, scale, b, attributes=given)).all()


def test_scaling_is_charged_to_the_vector_unit_and_products_to_the_gemm_unit() -> None:
    a, b = operand("e4m3", (M, K), 1), operand("fp16", (K, N), 2)
    bound = bound_for(
        "dot_scaled", a, scales(M, 3), b, attributes=attributes("e4m3", "fp16", (True, False))
    )
    assert bound.charges == (Charge("mul", M * K, float32), GemmCharge(M, N, K, 1, float16))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": "e3m4"}, "the format 'e3m4'"),
        ({"left": "bf16"}, "for bf16"),
        ({"left_k_pack": False}, "only e2m1 packed"),
        ({"out_dtype": float64}, "out_dtype float32"),
        ({"groups": 3}, "groups that divide k = 64"),
        ({"rows": 4}, "scales of uint8"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    change = change.copy()
    a, b = operand("e4m3", (M, K), 1), operand("e4m3", (K, N), 2)
    scale = scales(change.get("rows", M), 3, change.get("groups", 2))
    left = change.pop("left", "e4m3")
    given = attributes(left, "e4m3", (True, False), **change)
    with pytest.raises(KernelError, match=message):
        bound_for("dot_scaled", a, scale, b, attributes=given)


def test_an_accumulator_of_another_shape_is_refused() -> None:
    a, b = operand("e4m3", (M, K), 1), operand("e4m3", (K, N), 2)
    plain = attributes("e4m3", "e4m3", (False, False))
    with pytest.raises(KernelTypeError, match=r"an accumulator fp32\[16, 8\]"):
        bound_for("dot_scaled", a, b, np.zeros((N, M), np.float32), attributes=plain)
    with pytest.raises(KernelTypeError, match=r"\(..., m, k\) and \(..., k, n\)"):
        bound_for("dot_scaled", a, a, attributes=plain)
