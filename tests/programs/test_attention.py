"""The reference of attention, by hand."""

import numpy as np
import pytest

from tilewright.programs.attention import attention


def test_equal_scores_average_the_values_that_are_visible() -> None:
    keys = np.zeros((3, 4))
    values = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    visible = np.array([[True, False, False], [True, True, True]])
    found = attention(np.ones((2, 4)), keys, values, visible=visible)
    third = 1 / 3
    np.testing.assert_allclose(found, np.array([[1, 0, 0, 0], [third, third, third, 0]]))


def test_scores_are_scaled_by_the_root_of_the_channels() -> None:
    keys = np.array([[2.0, 0, 0, 0], [0, 0, 0, 0]])
    values = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    found = attention(np.array([[2.0, 0, 0, 0]]), keys, values)
    assert found[0, 0] == pytest.approx(np.exp(2) / (np.exp(2) + 1))
