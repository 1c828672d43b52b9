"""Composites: staging, epilogues of the three scopes, dtypes, and what they refuse."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interop.kernbench.language.bed import Array, launch, place, run
from tilewright.errors import KernelError
from tilewright.host import RuntimeContext

RNG = np.random.default_rng(7)
M, K, N = 48, 96, 40
SLACK = 2.0**-10  # of f16, relative to the largest element


def normal(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float16)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def agrees(out: Array, exact: Array) -> bool:
    return bool(np.abs(out - exact).max() <= SLACK * np.abs(exact).max())


@pytest.mark.parametrize("staging", ["ref/ref", "load/ref", "load/load"])
def test_a_gemm_gives_numpys_product_however_its_operands_are_staged(staging: str) -> None:
    left, right = staging.split("/")

    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        a = getattr(tl, left)(a_ptr, (M, K), "f16")
        b = getattr(tl, right)(b_ptr, (K, N), "f16")
        assert tl.wait(tl.composite("gemm", a, b, out_ptr)) is None

    a, b = normal(M, K), normal(K, N)
    assert agrees(run(kernel, a, b, np.zeros((M, N), np.float16)), wide(a) @ wide(b))


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 70)] * 3),
    tiles=st.none() | st.tuples(*[st.sampled_from([16, 32, 48])] * 3),
    staging=st.tuples(*[st.sampled_from(["ref", "load"])] * 2),
)
def test_a_gemm_of_any_size_in_any_tiles_is_the_exact_product_rounded_once(
    sizes: tuple[int, int, int], tiles: tuple[int, int, int] | None, staging: tuple[str, str]
) -> None:
    """Whole numbers, which f32 adds up exactly whatever the order."""
    m, k, n = sizes

    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        a = getattr(tl, staging[0])(a_ptr, (m, k), "f16")
        b = getattr(tl, staging[1])(b_ptr, (k, n), "f16")
        tl.wait(tl.composite("gemm", a, b, out_ptr, tile_shape=tiles))

    a, b = (RNG.integers(-8, 9, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    out = run(kernel, a, b, np.zeros((m, n), np.float16))
    assert np.array_equal(out, (wide(a) @ wide(b)).astype(np.float16))


def test_stages_of_the_three_scopes_run_in_the_order_of_their_scopes() -> None:
    """A scale for each k tile, then a bias and a relu for each tile, then a sum with a matrix."""
    scales = np.array([0.5, 2.0], np.float32)  # of the k tiles 0 to 63 and 64 to 95

    def kernel(
        a_ptr: int, b_ptr: int, bias_ptr: int, scale_ptr: int, out_ptr: int, tl: Any
    ) -> None:
        bias = tl.load(bias_ptr, (1, N), "f16")
        scale = tl.load(scale_ptr, (2, 1, 1), "f32")
        begun = tl.composite(
            op="gemm",
            a=tl.ref(a_ptr, (M, K), "f16"),
            b=tl.ref(b_ptr, (K, N), "f16"),
            out_ptr=out_ptr,
            epilogue=[
                ("scale", scale, "k_tile"),
                {"op": "bias", "bias": bias},
                {"op": "relu"},
                {"op": "add", "operand": 3.0, "scope": "kernel"},
            ],
        )
        tl.wait(begun)

    a, b, bias = normal(M, K), normal(K, N), normal(1, N)
    out = run(kernel, a, b, bias, scales, np.zeros((M, N), np.float16))
    products = 0.5 * (wide(a[:, :64]) @ wide(b[:64])) + 2.0 * (wide(a[:, 64:]) @ wide(b[64:]))
    assert agrees(out, np.maximum(products + wide(bias), 0) + 3)


def test_the_tile_shape_is_m_k_n_as_kernbench_writes_it() -> None:
    """With k tiles of 48 there are two, so two scales fit; the other order would need three."""

    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        a, b = tl.ref(a_ptr, (M, K)), tl.ref(b_ptr, (K, N))
        scale = tl.full((2, 1, 1), 2.0, "f32")
        stages = [("scale", scale, "k_tile")]
        tl.wait(tl.composite("gemm", a, b, out_ptr, None, stages, "f32", (16, 48, 32)))

    a, b = normal(M, K), normal(K, N)
    out = run(kernel, a, b, np.zeros((M, N), np.float16))
    assert agrees(out, 2 * (wide(a) @ wide(b)))


def test_a_result_without_an_address_keeps_the_dtype_and_a_ref_names_another() -> None:
    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        a, b = tl.load(a_ptr, (M, K)), tl.load(b_ptr, (K, N))
        product = tl.wait(tl.composite("gemm", a, b))
        assert (product.dtype, product.shape) == ("f16", (M, N))
        tl.wait(tl.composite("gemm", a, b, tl.ref(out_ptr, (M, N), "f32")))

    a, b = normal(M, K), normal(K, N)
    out = run(kernel, a, b, np.zeros((M, N), np.float32))
    assert np.abs(out - wide(a) @ wide(b)).max() < 1e-4


def test_an_accumulator_of_f16_rounds_each_k_tile() -> None:
    """2048 + 1 + 1: f16 cannot add 1 to 2048, f32 can."""
    a = np.zeros((16, 192), np.float16)
    a[:, [0, 64, 128]] = [2048, 1, 1]

    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, acc: Any, tl: Any) -> None:
        a, b = tl.ref(a_ptr, (16, 192)), tl.ref(b_ptr, (192, 16))
        tl.wait(tl.composite("gemm", a, b, out_ptr, acc_dtype=acc))

    arrays = (a, np.ones((192, 16), np.float16), np.zeros((16, 16), np.float16))
    assert (run(kernel, *arrays, args=("f16",)) == 2048).all()
    assert (run(kernel, *arrays, args=(None,)) == 2050).all()


def test_a_transposed_ref_streams_the_transposed_matrix() -> None:
    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        b = tl.trans(tl.ref(b_ptr, (N, K), "f16"))
        assert (b.addr, b.shape) == (b_ptr, (K, N))
        tl.wait(tl.composite("gemm", tl.ref(a_ptr, (M, K), "f16"), b, out_ptr))

    a, b = normal(M, K), normal(N, K)
    assert agrees(run(kernel, a, b, np.zeros((M, N), np.float16)), wide(a) @ wide(b).T)


def test_an_op_of_the_vector_unit_runs_over_tiles() -> None:
    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, tl: Any) -> None:
        a, b = tl.ref(a_ptr, (M, K), "f16"), tl.ref(b_ptr, (M, K), "f16")
        tl.wait(tl.composite("math", a, b, out_ptr, math_op="div", epilogue=["exp"]))

    a, b = normal(M, K), np.abs(normal(M, K)) + np.float16(1)
    assert agrees(run(kernel, a, b, np.zeros((M, K), np.float16)), np.exp(wide(a) / wide(b)))


def test_a_composite_goes_on_while_the_kernel_does() -> None:
    """Begun twice and then waited for, two products take less than one after the other."""

    def kernel(a_ptr: int, b_ptr: int, out_ptr: int, together: bool, tl: Any) -> None:
        a, b = tl.ref(a_ptr, (64, 512)), tl.ref(b_ptr, (512, 64))
        first = tl.composite("gemm", a, b, out_ptr)
        if not together:
            tl.wait(first)
        tl.wait(tl.composite("gemm", a, b, out_ptr))
        tl.wait(first)

    times = []
    for together in (True, False):
        with RuntimeContext("ahbm-small") as torch:
            tensors = [place(torch, normal(*shape)) for shape in ((64, 512), (512, 64), (64, 64))]
            report = launch(torch, kernel, *tensors, together).report
            times.append(report.last_end_ps - report.first_start_ps)
    assert times[0] < times[1]


@pytest.mark.parametrize(("options", "message"), [
    ({"epilogue": ["relux"]}, "expected an op of one or two operands; did you mean relu?"),
    ({"epilogue": [("bias", 1.0, "tile")]}, "the scope 'tile', expected k_tile or output_tile or"),
    ({"epilogue": [{"op": "bias", "x": 1, "y": 2}]}, "expected an op and one operand; write {"),
    ({"math_op": "relu"}, "math_op='relu' beside op='gemm', expected math_op with op=\"math\""),
    ({"op": "math"}, 'op="math" without math_op, expected the name of an op'),
    ({"op": "gem"}, "'gem' as the op of a composite, expected an op of one or two operands; did"),
    ({"tile_shape": (32, 64)}, "tile_shape (32, 64), expected three sizes: M, K, N"),
    ({"tile_shape": (32, 0, 16)}, "the shape (32, 0, 16), expected positive integers"),
    ({"epilogue": 3}, "the epilogue 3, expected a list of entries"),
    ({"epilogue": [()]}, "the entry () of an epilogue, expected an op; write"),
    ({"epilogue": [2.0]}, "the entry 2.0 of an epilogue, expected an op; write"),
    ({"acc_dtype": "fp32"}, "the dtype 'fp32', expected one of f16"),
    ({"a": 4096}, 'a number as an operand of "gemm", expected matrices; name the tensor at an'),
    ({"b": None}, 'op="gemm" with one operand, expected two operands'),
])  # fmt: skip
def test_a_wrong_composite_is_refused_before_anything_is_issued(
    options: dict[str, Any], message: str
) -> None:
    def kernel(x_ptr: int, tl: Any) -> None:
        given = {"op": "gemm", "a": tl.ref(x_ptr, (8, 8)), "b": tl.ref(x_ptr, (8, 8)), **options}
        tl.composite(out_ptr=x_ptr, **given)

    with RuntimeContext("ahbm-small") as torch:
        tensor = place(torch, np.ones((8, 8), np.float16))
        with pytest.raises(KernelError, match=re.escape(message)):
            launch(torch, kernel, tensor)
        assert (tensor.numpy() == 1).all()
