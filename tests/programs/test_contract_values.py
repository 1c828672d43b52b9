"""Errors are relative to the norm of a row."""

import numpy as np
import pytest

from tilewright.errors import BenchError
from tilewright.programs.contract import row_error, tolerance_of


def test_an_error_is_relative_to_its_own_row() -> None:
    expected = np.array([[3.0, 4.0], [300.0, 400.0]])
    found = expected + np.array([[0.0, 0.0], [5.0, 0.0]])
    assert row_error(found, expected) == pytest.approx(0.01)


def test_a_row_of_zeros_counts_with_its_absolute_error() -> None:
    assert row_error(np.array([[0.25, 0.0]]), np.zeros((1, 2))) == 0.25


def test_what_is_no_number_is_infinitely_wrong() -> None:
    assert row_error(np.array([[np.nan, 1.0]]), np.ones((1, 2))) == np.inf


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(BenchError, match="values of shape"):
        row_error(np.zeros(2), np.zeros((2, 1)))


def test_a_dtype_without_a_tolerance_is_refused() -> None:
    with pytest.raises(BenchError, match="f16, bf16, f32"):
        tolerance_of("f8e4m3")
