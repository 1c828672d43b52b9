from typing import Any

import numpy as np
import pytest

from tests.language.meaning.exact import as_float64
from tests.language.meaning.values import bound_for, result_of
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.dtype import (
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
)
from tilewright.language.meaning.bound import Array, Charge, GemmCharge

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
