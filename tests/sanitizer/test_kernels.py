"""Kernels that are right, as many as there are: nothing is found, and nothing changes."""

import pytest

from tests.kernels.case import KernelCase
from tests.kernels.ours import run_here
from tests.kernels.table import CASES
from tilewright.memory import Sanitizer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_right_kernel_has_no_findings_and_the_same_bytes_and_times(case: KernelCase) -> None:
    sanitizer = Sanitizer()
    call = (case.file, case.kernel, case.grid, case.arguments())
    plain, plain_result = run_here(*call)
    found, result = run_here(*call, sanitizer=sanitizer)
    assert [str(finding) for finding in sanitizer.findings] == []
    assert result == plain_result
    for name, array in plain.items():
        assert found[name].tobytes() == array.tobytes()
