""""""

import re
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.block import (
    ceil_div,
    check_product,
    check_size,
    look_up,
    num_bytes_of,
)
from tilewright.device.gemm import GEMM_PACE, Pace
from tilewright.errors import RegistryError, UnitError
from tilewright.units import DTYPE_BITS


@given(numerator=st.integers(0, 10**30), denominator=st.integers(1, 10**15))
def test_a_division_rounds_up_exactly_at_any_size(numerator: int, denominator: int) -> None:
    assert ceil_div(numerator, denominator) == ceil(Fraction(numerator, denominator))


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, np.int64(4)])
def test_what_is_no_int_of_at_least_one_is_refused(value: object) -> None:
    with pytest.raises(UnitError, match=r"here: found m = .*expected an int of at least 1"):
        check_size("here", "m", value)


def test_the_advice_fits_the_mistake() -> None:
    with pytest.raises(UnitError, match="leave empty work out"):
        check_size("here", "m", 0)
    with pytest.raises(UnitError, match=r"pass int\(value\)"):
        check_size("here", "m", np.int64(4))


@pytest.mark.parametrize(
    ("m", "n", "k_tiles", "found"),
    [(0, 1, [1], "m"), (1, 0, [1], "n"), (1, 1, [], "number of k tiles"), (1, 1, [2, 0], "k")],
)
def test_the_size_that_is_wrong_is_named(m: int, n: int, k_tiles: list[int], found: str) -> None:
    check_product("here", 1, 1, [1])
    with pytest.raises(UnitError, match=f"here: found {found} = 0"):
        check_product("here", m, n, k_tiles)


TABLE = {"sum": 1, "max": 2, "min": 3}


def test_a_known_name_is_found() -> None:
    assert look_up("here", "op", "max", TABLE) == 2


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("mix", "did you mean 'min' or 'max'?"),
        ("sums", "did you mean 'sum'?"),
        ("quite else", "use a known op"),
        (3, "use a known op"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_come_near(name: object, fix: str) -> None:
    with pytest.raises(RegistryError) as caught:
        look_up("here", "op", name, TABLE)
    assert caught.value.args == ("here", f"op {name!r}", "one of max, min, sum", fix)


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
