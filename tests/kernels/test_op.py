import numpy as np
import pytest

from tests.kernels.case import SOURCE
from tests.kernels.interpreter import run_in_triton
from tests.kernels.op_case import OPS, OpCase, run_meaning


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


def test_atomic_loads_and_stores_move_words() -> None:
    x = np.arange(16, dtype=np.int32)
    given = {"x_ptr": x, "out_ptr": np.zeros_like(x), "N": 16}
    found = run_in_triton(SOURCE / "op.py", "atomic_load_store_kernel", (1,), given)
    np.testing.assert_array_equal(found["out_ptr"], 2 * x)


def test_descriptors_load_and_store_by_functions_too() -> None:
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    given = {"x_ptr": x, "out_ptr": np.zeros_like(x), "R": 8, "C": 16}
    found = run_in_triton(SOURCE / "op.py", "descriptor_function_kernel", (1,), given)
    np.testing.assert_array_equal(found["out_ptr"], x + 1)


@pytest.mark.parametrize("formats", [("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e5m2", "e4m3")])
def test_scaled_products_mean_what_they_mean_in_triton(formats: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)
    m, n, k = 16, 16, 64
    packs = [2 if name == "e2m1" else 1 for name in formats]
    a = rng.integers(0, 120, (m, k // packs[0])).astype(np.uint8)
    b = rng.integers(0, 120, (k // packs[1], n)).astype(np.uint8)
    scales = [rng.integers(120, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    pointers = {"a_ptr": a, "a_scale_ptr": scales[0], "b_ptr": b, "b_scale_ptr": scales[1]}
    sizes = {"M": m, "N": n, "K": k, "K_A": k // packs[0], "K_B": k // packs[1]}
    out = {"out_ptr": np.zeros((m, n), np.float32), "LEFT": formats[0], "RIGHT": formats[1]}
    given = {**pointers, **out, **sizes}
    found = run_in_triton(SOURCE / "op.py", "scaled_dot_kernel", (1,), given)["out_ptr"]
    attributes = (*formats, True, True, True, True, None)
    expected = run_meaning("dot_scaled", a, scales[0], b, scales[1], attributes=attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
