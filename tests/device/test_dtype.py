import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.dtype import GEMM_PACE, Pace, num_bytes_of
from tilewright.errors import RegistryError
from tilewright.units import DTYPE_BITS


@pytest.mark.parametrize("dtype", sorted(set(DTYPE_BITS) - {"bool"}))
def test_the_first_number_of_a_dtype_s_name_is_its_width(dtype: str) -> None:
    number = re.search(r"[0-9]+", dtype)
    assert number is not None
    assert DTYPE_BITS[dtype] == int(number[0])


def test_a_bool_takes_a_byte() -> None:
    assert num_bytes_of("a block", 3, "bool") == 3


@given(elements=st.integers(1, 10**6), dtype=st.sampled_from(sorted(DTYPE_BITS)))
def test_bytes_hold_every_bit_and_none_is_empty(elements: int, dtype: str) -> None:
    num_bytes = num_bytes_of("a block", elements, dtype)
    assert 0 <= num_bytes * 8 - elements * DTYPE_BITS[dtype] < 8


def test_a_gemm_unit_takes_bytes_fast_and_words_slowly() -> None:
    bits = {pace: {DTYPE_BITS[d] for d, p in GEMM_PACE.items() if p is pace} for pace in Pace}
    assert bits == {Pace.NARROW: {8}, Pace.PLAIN: {16}, Pace.WIDE: {32}}


def test_an_unknown_dtype_is_refused_with_the_names_that_come_near() -> None:
    with pytest.raises(RegistryError, match=r"a block: found dtype 'bf32', .*did you mean 'f32'"):
        num_bytes_of("a block", 1, "bf32")
