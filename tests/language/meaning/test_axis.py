import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64
from tests.language.meaning.values import (
    bound_for,
    charges_of,
    evaluate,
    random_block,
    result_of,
    seeds,
)
from tilewright.device.vector import VectorLanes
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DTYPES, DType, float16, float32, int1, int16, int32, uint32
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Charge
from tilewright.machine.spec import TcmSpec, VectorSpec


def ordered(values: Array, dtype: DType, axis: int, *, descending: bool) -> Array:
    wide = as_float64(values) if dtype.is_floating() else values.astype(object)
    rows = np.sort(wide, axis=axis)
    return np.flip(rows, axis) if descending else rows


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_sorted_with_nan_above_all(
    dtype: DType, axis: int | None, descending: bool
) -> None:
    values = random_block(dtype, (8, 16), np.random.default_rng(17))
    found = result_of("sort", values, attributes=(axis, descending))
    expected = ordered(values, dtype, -1 if axis is None else axis, descending=descending)
    wide = as_float64(found) if dtype.is_floating() else found.astype(object)
    np.testing.assert_array_equal(wide, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("descending", [False, True])
def test_the_top_of_a_row_is_the_head_of_the_sorted_row(
    dtype: DType, k: int, descending: bool
) -> None:
    values = random_block(dtype, (4, 16), np.random.default_rng(17))
    found = result_of("topk", values, attributes=(k, None, descending))
    expected = ordered(values, dtype, -1, descending=descending)[:, :k]
    np.testing.assert_array_equal(as_float64(found), expected.astype(np.float64))
    narrow = dtype.primitive_bitwidth < 32 and k < 16
    result = (float32 if dtype.is_floating() else int32) if narrow else dtype
    assert found.dtype == result.storage


@pytest.mark.parametrize("k", [0, 3, 32])
def test_k_is_a_power_of_two_within_the_row(k: int) -> None:
    with pytest.raises(KernelError, match="topk"):
        bound_for("topk", np.zeros((4, 16), np.float32), attributes=(k, None, True))


def test_one_row_is_charged_by_the_law_of_sorting() -> None:
    assert bound_for("sort", np.zeros(64, np.float16), attributes=(0, False)).charges == (
        Charge("sort", 64, float32),
    )


def test_rows_that_share_the_lanes_cost_the_stages_of_one_row() -> None:
    unit = VectorLanes("vector", VectorSpec(), TcmSpec())
    blocks = (np.zeros((1, 64), np.float32), np.zeros((16, 64), np.float32))
    cycles = [
        charge.times * unit.cycles(charge.op, charge.elements, charge.dtype.device_name)
        for each in blocks
        for charge in charges_of("sort", each, attributes=(1, False))
    ]
    assert cycles == [21, 21]  # 16 rows of 32 exchanges fill the 512 lanes


@given(seed=seeds, descending=st.booleans(), levels=st.integers(0, 5))
def test_a_merge_sorts_rows_that_rise_and_then_fall(
    seed: int, descending: bool, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(-9, 9, (3, 2**levels)).astype(np.float32), axis=1)
    half = 2**levels // 2
    rows[:, half:] = rows[:, half:][:, ::-1]
    found = result_of("bitonic_merge", rows, attributes=(None, descending))
    np.testing.assert_array_equal(found, ordered(rows, float32, -1, descending=descending))


def test_a_merge_takes_a_power_of_two_along_the_last_axis() -> None:
    for shape, axis in (((4, 6), None), ((4, 8), 0)):
        with pytest.raises(KernelTypeError, match="along the last axis"):
            bound_for("bitonic_merge", np.zeros(shape, np.float32), attributes=(axis, False))


@given(seed=seeds, axis=st.sampled_from([0, 1, -1]), count=st.integers(1, 9))
def test_gather_takes_elements_by_index(seed: int, axis: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    values = random_block(DTYPES[seed % len(DTYPES)], (4, 6), rng)
    shape = (count, 6) if axis == 0 else (4, count)
    index = rng.integers(0, values.shape[axis], shape).astype(np.int32)
    found = result_of("gather", values, index, attributes=(axis,))
    assert found.tobytes() == np.take_along_axis(values, index, axis).tobytes()


@pytest.mark.parametrize("bad", [-1, 6])
def test_an_index_outside_the_axis_is_an_error_when_it_runs(bad: int) -> None:
    values, index = np.zeros((4, 6), np.float32), np.full((4, 1), bad, np.int32)
    bound = bound_for("gather", values, index, attributes=(1,))
    with pytest.raises(KernelError, match=r"gather: found indices from .*from 0 to 5 along axis 1"):
        evaluate(bound, values, index)


def test_an_index_has_the_shape_of_the_source_but_for_its_axis() -> None:
    source, index = block_type(float16, (4, 6)), block_type(int16, (3, 6))
    with pytest.raises(KernelTypeError, match="an index shaped as the source, but for axis 1"):
        MEANINGS["gather"].bind((source, index), (1,))
    with pytest.raises(KernelTypeError, match="expected integers"):
        MEANINGS["gather"].bind((source, source), (1,))


@given(seed=seeds, num_bins=st.integers(1, 40), masked=st.booleans())
def test_a_histogram_counts_what_lies_in_its_bins(seed: int, num_bins: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-5, 45, 64).astype(np.int32)
    mask = rng.integers(0, 2, 64).astype(np.bool_)
    operands = (values, mask) if masked else (values,)
    found = result_of("histogram", *operands, attributes=(num_bins,))
    counted = values[mask] if masked else values
    assert found.tolist() == [int(np.sum(counted == number)) for number in range(num_bins)]


def test_a_histogram_takes_one_axis_of_32_bit_integers() -> None:
    for types in ((block_type(int16, (8,)),), (block_type(int32, (2, 4)),)):
        with pytest.raises(KernelTypeError, match="one axis of 32-bit integers"):
            MEANINGS["histogram"].bind(types, (4,))
    wrong_mask = (block_type(uint32, (8,)), block_type(int32, (8,)))
    with pytest.raises(KernelTypeError, match="a mask of int1"):
        MEANINGS["histogram"].bind(wrong_mask, (4,))
    scalar_mask = (block_type(uint32, (8,)), block_type(int1, ()))
    assert MEANINGS["histogram"].bind(scalar_mask, (4,)).type is block_type(int32, (4,))
