import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.validation.gemm.formula import run_dot_array

sizes = st.integers(1, 7)


@given(product=st.tuples(sizes, sizes, sizes), shape=st.tuples(sizes, sizes, sizes))
def test_every_multiply_add_is_made_exactly_once(
    product: tuple[int, int, int], shape: tuple[int, int, int]
) -> None:
    m, n, k = product
    left = np.arange(m * k).reshape(m, k)
    right = np.arange(k * n).reshape(k, n) - 3
    run = run_dot_array(left, right, shape=shape)
    assert np.array_equal(run.product, left @ right)
    assert np.all(run.times_made == 1)


def test_slow_steps_and_the_fill_add_cycles() -> None:
    ones = np.ones((4, 4), np.int64)
    assert run_dot_array(ones, ones, shape=(2, 2, 2)).num_cycles == 8
    run = run_dot_array(ones, ones, shape=(2, 2, 2), step_cycles=3, fill_cycles=5)
    assert run.num_cycles == 29
