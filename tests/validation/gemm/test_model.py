"""The stepped models of GEMM arrays, by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.validation.gemm.model import run_dot_array, run_systolic


def test_one_cell_adds_one_product_a_cycle() -> None:
    run = run_systolic(np.array([[2, 3, 4]]), np.array([[5], [6], [7]]), rows=1, columns=1)
    assert run.product.tolist() == [[56]]
    assert run.fold_ends == (2,)
    assert run.num_cycles == 3


def test_the_far_corner_starts_as_many_cycles_later_as_it_is_cells_away() -> None:
    ones = np.ones((2, 2), np.int64)
    run = run_systolic(ones, ones, rows=2, columns=2)
    assert run.product.tolist() == [[2, 2], [2, 2]]
    assert run.fold_ends == (3,)  # pairs reach the corner in cycles 2 and 3


def test_folds_follow_each_other_and_a_ragged_one_takes_as_long() -> None:
    ones = np.ones((3, 3), np.int64)
    run = run_systolic(ones, ones, rows=2, columns=2)
    assert np.array_equal(run.product, ones * 3)
    assert run.fold_ends == (4, 9, 14, 19)


def test_values_that_travel_together_are_multiplied_together() -> None:
    left, right = np.array([[1, 2, 3]]), np.array([[4], [5], [6]])
    run = run_systolic(left, right, rows=1, columns=1, products=2)
    assert run.product.tolist() == [[32]]
    assert run.num_cycles == 2


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
