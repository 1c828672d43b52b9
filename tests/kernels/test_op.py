import numpy as np
import pytest

from tests.kernels.case import SOURCE
from tests.kernels.extra_case import EXTRAS, ExtraCase
from tests.kernels.interpreter import run_in_triton
from tests.kernels.op_case import OPS, OpCase


@pytest.mark.parametrize("case", OPS, ids=lambda case: case.name)
def test_a_function_means_what_it_means_in_triton(case: OpCase) -> None:
    found = run_in_triton(SOURCE / "op.py", case.kernel, (1,), case.arguments())["out_ptr"]
    expected = case.expected().ravel().astype(found.dtype)
    assert np.any(found), "nothing was stored"
    if case.tolerance:
        np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)
    else:
        np.testing.assert_array_equal(found, expected)
        numbers = found == found
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("case", EXTRAS, ids=lambda case: case.name)
def test_a_kernel_of_words_descriptors_or_scales_does_what_it_says(case: ExtraCase) -> None:
    found = run_in_triton(SOURCE / "op.py", case.kernel, (1,), case.arguments())["out_ptr"]
    np.testing.assert_allclose(found, case.expected(), rtol=case.tolerance)
