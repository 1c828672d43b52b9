import numpy as np
import pytest

from tests.kernels.case import check_close, tolerance_of
from tests.kernels.table import CASES
from tests.kernels.torch_result import IN_TORCH
from tilewright.language.dtype import bfloat16

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("name", IN_TORCH)
def test_torch_computes_in_bf16_what_numpy_says(name: str) -> None:
    case = BY_NAME[name]
    given = case.arguments()
    expected = case.expected(given)
    for output, found in IN_TORCH[name](given).items():
        assert found.dtype == bfloat16.storage
        check_close(f"{name}.{output}", found, expected[output], tolerance_of(given))


def test_every_case_in_bf16_has_torch_for_its_oracle() -> None:
    narrow = {
        case.name
        for case in CASES
        if any(
            isinstance(value, np.ndarray) and value.dtype == bfloat16.storage
            for value in case.arguments().values()
        )
    }
    assert narrow == set(IN_TORCH)
    assert not any(BY_NAME[name].runs_in_triton for name in narrow)
