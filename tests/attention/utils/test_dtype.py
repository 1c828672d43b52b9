import numpy as np
import pytest
import torch

from tilewright.attention.graph import DType
from tilewright.attention.utils import (
    DTYPE_STR_TO_TORCH,
    Mode,
    ReduceType,
    Schedule,
    is_hopper,
    resolve_dtype,
)
from tilewright.errors import SpecError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (torch.bfloat16, DType.BFLOAT16),
        (torch.float8_e4m3fn, DType.FLOAT8_E4M3),
        (torch.int32, DType.INT32),
        (torch.bool, DType.BOOL),
        (np.float32, DType.FLOAT32),
        (np.dtype("float16"), DType.FLOAT16),
        ("fp8_e5m2", DType.FLOAT8_E5M2),
        ("torch.float16", DType.FLOAT16),
        (DType.INT4, DType.INT4),
    ],
)
def test_an_element_type_is_known_by_every_name(given: object, expected: DType) -> None:
    assert resolve_dtype(given) is expected


@pytest.mark.parametrize("given", [torch.complex64, "double", None, 3])
def test_what_is_no_element_type_of_flows_is_refused(given: object) -> None:
    with pytest.raises(SpecError, match="expected one of float32"):
        resolve_dtype(given)


def test_every_listed_name_resolves_to_its_entry() -> None:
    assert all(resolve_dtype(name) is dtype for name, dtype in DTYPE_STR_TO_TORCH.items())


def test_enumerations_have_the_numbers_that_users_know() -> None:
    assert (Schedule.W, Schedule.S) == (0, 1)
    assert (Mode.profile, Mode.execute) == (0, 1)
    assert [kind.name for kind in sorted(ReduceType)] == ["Mean", "Max", "Min", "L2Norm", "Sum"]
    assert not is_hopper()
