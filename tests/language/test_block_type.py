import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DTYPES, DType, float16, float32, int1, int4

SHAPES = st.lists(st.integers(1, 64), max_size=4).map(tuple)


@given(dtype=st.sampled_from(DTYPES), shape=SHAPES)
def test_there_is_one_type_for_a_dtype_and_a_shape(dtype: DType, shape: tuple[int, ...]) -> None:
    found = block_type(dtype, shape)
    assert block_type(dtype, shape) is found
    assert copy.deepcopy(found) is found
    assert pickle.loads(pickle.dumps(found)) is found
    assert found.with_dtype(float32).with_dtype(dtype) is found
    assert found.with_shape((1, *shape)).with_shape(shape) is found
    assert 8 * found.num_bytes - found.num_elements * dtype.bits in range(8)


def test_a_scalar_is_one_element_without_extents() -> None:
    assert (block_type(float16, ()).num_elements, block_type(float16, ()).num_bytes) == (1, 2)


def test_int4_is_packed_and_bool_takes_a_byte() -> None:
    assert block_type(int4, (3, 3)).num_bytes == 5
    assert block_type(int1, (3, 3)).num_bytes == 9


@pytest.mark.parametrize("shape", [(0,), (4, -1), (2.5,)])
def test_extents_are_whole_numbers_from_one_up(shape: tuple[int, ...]) -> None:
    with pytest.raises(KernelTypeError, match="expected whole numbers from 1 up"):
        block_type(float32, shape)
