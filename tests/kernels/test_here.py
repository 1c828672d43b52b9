import numpy as np
import pytest

from tests.kernels.case import SOURCE, KernelCase, check_expected, check_same
from tests.kernels.extra_case import EXTRAS, ExtraCase
from tests.kernels.op_case import OPS, OpCase
from tests.kernels.ours import run_here
from tests.kernels.table import CASES
from tests.kinds import needs_both_engines
from tilewright.engine import EngineKind

BENCHMARK_KERNELS = (
    "vector_add_float32",
    "softmax",
    "layer_norm_float32",
    "attention_full_float32",
)


def name(case: KernelCase | OpCase) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_kernel_computes_here_what_numpy_and_triton_say(case: KernelCase) -> None:
    found, _ = run_here(case.file, case.kernel, case.grid, case.arguments())
    check_expected(case, found)
    if case.runs_in_triton:
        check_same(case, found, case.in_triton())


@pytest.mark.parametrize("case", OPS, ids=name)
def test_a_function_means_here_what_it_means_in_triton(case: OpCase) -> None:
    arrays, _ = run_here(SOURCE / "op.py", case.kernel, (1,), case.arguments())
    found = arrays["out_ptr"]
    expected = case.expected().ravel().astype(found.dtype)
    assert np.any(found), "nothing was stored"
    if case.tolerance:
        np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", EXTRAS, ids=lambda case: case.name)
def test_a_kernel_of_words_descriptors_or_scales_does_here_what_it_says(case: ExtraCase) -> None:
    arrays, _ = run_here(SOURCE / "op.py", case.kernel, (1,), case.arguments())
    np.testing.assert_allclose(arrays["out_ptr"], case.expected(), rtol=case.tolerance)


@needs_both_engines
@pytest.mark.parametrize("case_name", ["vector_add_float32", "split_k", "scan", "ragged_sum"])
def test_both_engines_give_the_same_bytes_and_times(case_name: str) -> None:
    case = next(case for case in CASES if case.name == case_name)
    runs = [
        run_here(case.file, case.kernel, case.grid, case.arguments(), kind) for kind in EngineKind
    ]
    (first, first_result), (second, second_result) = runs
    assert first_result == second_result
    for key, array in first.items():
        assert array.tobytes() == second[key].tobytes()


@pytest.mark.parametrize("case_name", BENCHMARK_KERNELS)
def test_indices_of_plain_kernels_stay_affine(case_name: str) -> None:
    case = next(case for case in CASES if case.name == case_name)
    _, result = run_here(case.file, case.kernel, case.grid, case.arguments())
    assert result.counters.gathers == 0
