from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.size import ceil_div, check_product, check_size
from tilewright.errors import UnitError


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
