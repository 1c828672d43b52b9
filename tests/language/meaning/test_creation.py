import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, round_float
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    bound_for,
    charges_of,
    evaluate,
    result_of,
)
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import (
    DTYPES,
    DType,
    bfloat16,
    float16,
    float32,
    int32,
    uint8,
    uint32,
)
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Charge
from tilewright.language.meaning.creation import constant


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(st.floats())
def test_a_number_becomes_a_float_by_one_rounding(dtype: DType, value: float) -> None:
    found = constant(value, dtype)
    assert (found.shape, found.dtype) == ((), dtype.storage)
    np.testing.assert_array_equal(as_float64(found), round_float(np.array(value), dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_integer_dtype_takes_its_range_and_no_more(dtype: DType) -> None:
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    assert int(constant(low, dtype)) == low
    assert int(constant(high, dtype)) == high
    assert int(constant(0.0, dtype)) == 0
    for value in (low - 1, high + 1, 0.5):
        with pytest.raises(KernelTypeError, match=f"add: .*an integer from {low} to {high}"):
            constant(value, dtype, "add")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_full_block_has_one_value_everywhere(dtype: DType) -> None:
    bound = MEANINGS["full"].bind((), ((4, 8), 1, dtype))
    found = evaluate(bound)
    assert bound.type is block_type(dtype, (4, 8))
    np.testing.assert_array_equal(found.astype(np.float64), np.ones((4, 8)))
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 0


def test_a_full_block_of_a_scalar_block_casts_it() -> None:
    scalar = np.array(2.5, np.float32)
    bound = bound_for("full", scalar, attributes=((2, 2), None, int32))
    np.testing.assert_array_equal(evaluate(bound, scalar), [[2, 2], [2, 2]])
    assert evaluate(bound, scalar).dtype == np.int32


def test_a_full_scalar_is_no_command() -> None:
    bound = MEANINGS["full"].bind((), ((), 7, bfloat16))
    assert bound.charges == ()
    assert float(evaluate(bound)) == 7.0


def test_a_block_to_fill_with_is_a_scalar() -> None:
    with pytest.raises(KernelTypeError, match="a scalar to fill the block with"):
        MEANINGS["full"].bind((block_type(float32, (2,)),), ((4,), None, float16))


def test_a_full_block_keeps_to_the_range_of_its_dtype() -> None:
    with pytest.raises(KernelTypeError, match="full: found the number 256"):
        MEANINGS["full"].bind((), ((4,), 256, uint8))


# Salmon and others, "Parallel random numbers: as easy as 1, 2, 3": factors and key steps
CONSTANTS = {
    32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: ((0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)),
}
NAMES = ("randint", "rand", "randn")


def philox(counter: list[int], key: list[int], rounds: int, width: int = 32) -> list[int]:
    """By Python's integers, word by word."""
    factors, steps = CONSTANTS[width]
    for _ in range(rounds):
        first, second = factors[0] * counter[0], factors[1] * counter[2]
        counter = [
            second >> width ^ counter[1] ^ key[0],
            second % 2**width,
            first >> width ^ counter[3] ^ key[1],
            first % 2**width,
        ]
        key = [(each + step) % 2**width for each, step in zip(key, steps, strict=True)]
    return counter


def draws(op: str, seed: int, offset: Array, rounds: int = 10) -> Array:
    key = np.array(seed, np.uint64 if seed >= 2**63 else np.int64)
    bound = bound_for(op, key, offset, attributes=(rounds,))
    return (
        np.stack(evaluate(bound, key, offset))
        if op.endswith("4x")
        else evaluate(bound, key, offset)
    )


@given(
    seed=st.integers(-(2**63), 2**64 - 1),
    offset=st.integers(-(2**63), 2**63 - 1),
    rounds=st.integers(1, 12),
)
def test_words_are_philox_of_the_offset_keyed_by_the_seed(
    seed: int, offset: int, rounds: int
) -> None:
    found = draws("randint4x", seed, np.array([offset], np.int64), rounds)
    counter = [offset % 2**32, (offset >> 32) % 2**32, 0, 0]
    key = [seed % 2**32, (seed % 2**64) >> 32]
    assert found[:, 0].tolist() == philox(counter, key, rounds)


@pytest.mark.parametrize("width", [32, 64])
@given(seed=st.integers(-(2**63), 2**63 - 1), data=st.data())
def test_philox_takes_its_counters_as_they_are(width: int, seed: int, data: st.DataObject) -> None:
    word = st.integers(0, 2**width - 1)
    counter = [data.draw(word) for _ in range(4)]
    operands = (np.array(seed), *(np.array([each], f"uint{width}") for each in counter))
    found = evaluate(bound_for("philox", *operands, attributes=(10,)), *operands)
    key = [seed % 2**32, (seed % 2**64) >> 32] if width == 32 else [seed % 2**64, 0]
    assert [int(each[0]) for each in found] == philox(counter, key, 10, width)


def test_philox_takes_counters_of_one_width() -> None:
    narrow, wide = np.zeros(4, np.uint32), np.zeros(4, np.uint64)
    with pytest.raises(KernelTypeError, match="four counters of 32 or of 64 bits"):
        bound_for("philox", np.array(1), narrow, wide, narrow, narrow, attributes=(10,))


def test_the_published_answer_of_philox_comes_out() -> None:
    """Salmon and others' known answer for counter and key 0, ten rounds."""
    found = draws("randint4x", 0, np.array([0], np.int32))
    assert [f"{each:08x}" for each in found[:, 0]] == [
        "6627e8d5",
        "e169c58d",
        "bc57ac4c",
        "9b00dbd8",
    ]


def test_a_negative_narrow_offset_counts_by_its_low_32_bits() -> None:
    np.testing.assert_array_equal(
        draws("randint", 5, np.array([-1], np.int32)),
        draws("randint", 5, np.array([2**32 - 1], np.uint32)),
    )


def test_one_draw_is_the_first_of_four() -> None:
    offset = np.arange(64, dtype=np.int32)
    for name in NAMES:
        np.testing.assert_array_equal(draws(name, 7, offset), draws(f"{name}4x", 7, offset)[0])


def test_a_uniform_draw_is_its_word_folded_at_the_sign_and_scaled() -> None:
    offset = np.arange(2048, dtype=np.int32)
    words = draws("randint", 3, offset).astype(np.int64)
    folded = np.where(words >= 2**31, 2**32 - 1 - words, words).astype(np.float32)
    np.testing.assert_array_equal(draws("rand", 3, offset), folded * np.float32(4.6566127342e-10))


def test_uniform_draws_lie_below_one_and_fill_the_range() -> None:
    found = draws("rand4x", 11, np.arange(2**14, dtype=np.int32))
    assert found.dtype == np.float32
    assert found.min() >= 0
    assert found.max() < 1
    assert abs(found.mean() - 0.5) < 4 * np.sqrt(1 / 12 / found.size)


def test_normal_draws_have_mean_zero_and_variance_one() -> None:
    found = draws("randn4x", 13, np.arange(2**14, dtype=np.int32)).astype(np.float64)
    assert abs(found.mean()) < 4 / np.sqrt(found.size)
    assert abs(found.var() - 1) < 4 * np.sqrt(2 / found.size)


def test_a_round_is_four_products_and_four_exclusive_ors() -> None:
    operands = (np.array(1), np.arange(8))
    charges = charges_of("randint", *operands, attributes=(10,))
    assert charges == [Charge("mul", 8, uint32, 40), Charge("xor", 8, uint32, 40)]
    ops = [each.op for each in charges_of("randn", *operands, attributes=(10,))]
    assert {"log", "sqrt", "cos"} <= set(ops)
    assert "sin" not in ops


def test_what_draws_need_is_checked() -> None:
    with pytest.raises(KernelTypeError, match="a scalar seed"):
        bound_for("rand", np.arange(2), np.arange(8), attributes=(10,))
    with pytest.raises(KernelTypeError, match="expected integers"):
        bound_for("rand", np.array(1), np.zeros(8, np.float32), attributes=(10,))
    with pytest.raises(KernelError, match="n_rounds=0"):
        bound_for("rand", np.array(1), np.arange(8), attributes=(0,))


def test_results_have_the_dtypes_of_triton() -> None:
    assert result_of("randint", np.array(1), np.arange(8), attributes=(10,)).dtype == uint32.storage
    assert result_of("randn", np.array(1), np.arange(8), attributes=(10,)).dtype == float32.storage


def test_words_and_uniform_blocks_are_turned_as_the_draws_are() -> None:
    offset = np.arange(64, dtype=np.int32)
    words, uniform = draws("randint4x", 9, offset), draws("rand4x", 9, offset)
    for word, expected in zip(words, uniform, strict=True):
        np.testing.assert_array_equal(result_of("uint_to_uniform_float", word), expected)
    bound = bound_for("pair_uniform_to_normal", uniform[0], uniform[1])
    found = evaluate(bound, uniform[0], uniform[1])
    np.testing.assert_array_equal(np.stack(found), draws("randn4x", 9, offset)[:2])


def test_the_largest_words_of_64_bits_stay_within_one() -> None:
    words = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    found = result_of("uint_to_uniform_float", words)
    np.testing.assert_allclose(found, [0.0, 1.084202e-19, 1.0, 1.0, 0.0], rtol=1e-6)


def test_only_words_become_uniform_and_only_float32_becomes_normal() -> None:
    with pytest.raises(KernelTypeError, match="integers of 32 or 64 bits"):
        bound_for("uint_to_uniform_float", np.zeros(4, np.int8))
    with pytest.raises(KernelTypeError, match="two blocks of float32"):
        bound_for("pair_uniform_to_normal", np.zeros(4, np.float32), np.zeros(4))
