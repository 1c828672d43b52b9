import numpy as np

from tilewright.validation.gemm.systolic import run_systolic


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
