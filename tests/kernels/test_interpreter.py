import numpy as np
import pytest
from triton.runtime.jit import JITFunction  # type: ignore[import-untyped]

from tests.kernels.case import KernelCase, check_close, check_expected
from tests.kernels.interpreter import InterpreterFailure, run_in_triton
from tests.kernels.source.vector_add import add_kernel
from tests.kernels.table import CASES

IN_TRITON = [case for case in CASES if case.runs_in_triton]


def name(case: KernelCase) -> str:
    return case.name


@pytest.mark.parametrize("case", IN_TRITON, ids=name)
def test_tritons_interpreter_computes_what_numpy_says(case: KernelCase) -> None:
    check_expected(case, case.in_triton())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_inputs_are_the_same_each_time_and_outputs_are_among_them(case: KernelCase) -> None:
    first, second = case.arguments(), case.arguments()
    for key, value in first.items():
        if isinstance(value, np.ndarray):
            assert value.tobytes() == second[key].tobytes()
    assert set(case.exact) <= set(case.outputs) <= set(first)


def test_names_are_given_once() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_in_this_process_triton_stays_what_a_users_program_sees() -> None:
    assert type(add_kernel) is JITFunction


def test_a_kernel_that_fails_says_why() -> None:
    case = CASES[0]
    wrong = case.arguments() | {"BLOCK_SIZE": 100}
    with pytest.raises(InterpreterFailure, match="power of 2"):
        run_in_triton(case.file, case.kernel, case.grid, wrong)


def test_a_wrong_element_is_found() -> None:
    case = CASES[0]
    found = case.in_triton()
    found["out_ptr"][3] += 0.1
    with pytest.raises(AssertionError, match="of the row's norm"):
        check_expected(case, found)


def test_a_lost_infinity_is_found() -> None:
    with pytest.raises(AssertionError, match="lost"):
        check_close("lost", np.zeros(2, np.float32), np.array([0.0, np.inf]), 1e-5)
