"""Composites: values as NumPy has them, one command, and times near what the units allow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kinds import every_engine
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.dtype import int4
from tilewright.machine import PeCoord, build_machine, parse_machine
from tilewright.machine.build import Machine
from tilewright.runtime.workspace import LaunchResult, PlacedArray, Workspace

Array = np.ndarray[Any, Any]
PES = [PeCoord(0, 0, 0)]
M, N, K = 40, 48, 100
TILE = (16, 32, 32)
VARIANTS = ["ref/ref", "load/ref", "ref/load", "load/load"]


@pytest.fixture(scope="module")
def machine() -> Machine:
    return build_machine(parse_machine("ahbm"))


@pytest.fixture
def workspace(machine: Machine) -> Workspace:
    return Workspace(machine)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def staged(pointer: Any, shape: tuple[int, int], how: str) -> Any:
    return tl.ref(pointer, shape) if how == "ref" else tl.load(pointer, shape=shape)


def product_kernel(a: Any, b: Any, c: Any, variant: str, epilogue: Any, tile_shape: Any) -> None:
    left, right = variant.split("/")
    stages = epilogue() if callable(epilogue) else epilogue
    tl.composite(
        "gemm",
        staged(a, (M, K), left),
        staged(b, (K, N), right),
        c,
        epilogue=stages,
        tile_shape=tile_shape,
    )


def multiply(
    workspace: Workspace,
    left: Array,
    right: Array,
    *,
    variant: str = "ref/ref",
    epilogue: Any = (),
    out: Any = np.float32,
    tile_shape: tuple[int, ...] = TILE,
) -> tuple[Array, LaunchResult]:
    arrays = [workspace.place(x, PES) for x in (left, right, np.zeros((M, N), out))]
    result = launch(workspace, product_kernel, *arrays, variant, epilogue, tile_shape)
    return workspace.read(arrays[2]), result


def launch(workspace: Workspace, kernel: Callable[..., Any], *arguments: Any) -> LaunchResult:
    """Everything that is no array is a constant of the kernel."""
    arrays = [value for value in arguments if isinstance(value, PlacedArray)]
    constants = arguments[len(arrays) :]

    def body(*pointers: Any) -> None:
        kernel(*pointers, *constants)

    def kernel_of_five(p0: Any, p1: Any = None, p2: Any = None, p3: Any = None) -> None:
        body(*(pointer for pointer in (p0, p1, p2, p3) if pointer is not None))

    return workspace.launch(kernel_of_five, *arrays, grid=(1,), pes=PES)


def operands(rng: np.random.Generator, dtype: Any = np.float16) -> tuple[Array, Array]:
    if np.issubdtype(dtype, np.integer):
        return (
            rng.integers(-9, 9, (M, K)).astype(dtype),
            rng.integers(-9, 9, (K, N)).astype(dtype),
        )
    return (
        rng.standard_normal((M, K)).astype(dtype),
        rng.standard_normal((K, N)).astype(dtype),
    )


def in_order(left: Array, right: Array, scales: Array | None = None) -> Array:
    """The product as a composite adds it up: k tile by k tile in float32."""
    wide, tall = left.astype(np.float32), right.astype(np.float32)
    total = np.empty((M, N), np.float32)
    for row in range(0, M, TILE[0]):
        for column in range(0, N, TILE[1]):
            rows, columns = slice(row, row + TILE[0]), slice(column, column + TILE[1])
            part: Any = None
            for tile, k in enumerate(range(0, K, TILE[2])):
                product = wide[rows, k : k + TILE[2]] @ tall[k : k + TILE[2], columns]
                if scales is not None:
                    product *= scales[tile]
                part = product if part is None else product + part
            total[rows, columns] = part
    return total


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_staging_gives_the_product_added_up_in_order(
    workspace: Workspace, rng: np.random.Generator, variant: str
) -> None:
    left, right = operands(rng)
    found, result = multiply(workspace, left, right, variant=variant)
    np.testing.assert_array_equal(found, in_order(left, right))
    assert result.counters.commands == 1 + variant.count("load")
    assert result.counters.spilled_bytes == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_accumulators_have_the_dtype_that_products_of_their_operands_have(
    workspace: Workspace, rng: np.random.Generator, dtype: Any
) -> None:
    left, right = operands(rng, dtype)
    out = {np.float32: np.float32, np.float64: np.float64, np.int8: np.int32}[dtype]
    found, _ = multiply(workspace, left, right, out=out)
    wide = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(found, wide, rtol=1e-5, atol=1e-4 if dtype is np.float32 else 1e-9)


def test_results_are_rounded_once_to_the_dtype_of_the_output(
    workspace: Workspace, rng: np.random.Generator
) -> None:
    left, right = operands(rng)
    found, _ = multiply(workspace, left, right, out=np.float16)
    np.testing.assert_array_equal(found, in_order(left, right).astype(np.float16))


def test_a_scale_of_each_k_tile_comes_before_the_sum(
    workspace: Workspace, rng: np.random.Generator
) -> None:
    left, right = operands(rng)
    scales = np.array([1, 2, -3, 0.5], np.float32)
    placed = [workspace.place(x, PES) for x in (left, right, np.zeros((M, N), np.float32), scales)]

    def kernel(a: Any, b: Any, c: Any, s: Any) -> None:
        epilogue = [("scale", tl.ref(s, (4, 1, 1)), "k_tile")]
        tl.composite("gemm", tl.ref(a, (M, K)), tl.ref(b, (K, N)), c, epilogue, tile_shape=TILE)

    launch(workspace, kernel, *placed)
    np.testing.assert_array_equal(workspace.read(placed[2]), in_order(left, right, scales))


@pytest.mark.parametrize("scope", ["output_tile", "kernel"])
@pytest.mark.parametrize("shape", [(1, N), (N,), (M, 1), (M, N), (1, 1)])
@pytest.mark.parametrize("how", ["ref", "load"])
def test_a_bias_meets_the_places_that_broadcasting_gives_it(
    workspace: Workspace,
    rng: np.random.Generator,
    scope: str,
    shape: tuple[int, ...],
    how: str,
) -> None:
    left, right = operands(rng)
    bias = rng.standard_normal(shape).astype(np.float32)
    placed = [workspace.place(x, PES) for x in (left, right, np.zeros((M, N), np.float32), bias)]

    def kernel(a: Any, b: Any, c: Any, d: Any) -> None:
        operand = tl.ref(d, shape) if how == "ref" else tl.load(d, shape=shape)
        epilogue = [("bias", operand, scope), ("relu", None, scope)]
        tl.composite("gemm", tl.ref(a, (M, K)), tl.ref(b, (K, N)), c, epilogue, tile_shape=TILE)

    launch(workspace, kernel, *placed)
    expected = np.maximum(in_order(left, right) + bias, 0)
    np.testing.assert_array_equal(workspace.read(placed[2]), expected)


@every_engine
def test_without_an_output_the_result_is_a_block(
    machine: Machine, rng: np.random.Generator, kind: EngineKind
) -> None:
    workspace = Workspace(machine, kind)
    left, right = operands(rng)
    placed = [workspace.place(x, PES) for x in (left, right, np.zeros((M, N), np.float32))]

    def kernel(a: Any, b: Any, c: Any) -> None:
        handle = tl.composite(
            "gemm",
            tl.ref(a, (M, K)),
            tl.ref(b, (K, N)),
            epilogue=[("scale", 2.0), ("add", 1.0, "kernel")],
            tile_shape=TILE,
        )
        block = tl.wait(handle)
        tl.store(tl.ref(c, (M, N)), block)

    launch(workspace, kernel, *placed)
    np.testing.assert_array_equal(workspace.read(placed[2]), 2 * in_order(left, right) + 1)


def test_an_op_of_the_vector_unit_runs_over_tiles(
    workspace: Workspace, rng: np.random.Generator
) -> None:
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((50, 70), (1, 70)))
    placed = [workspace.place(values, PES) for values in (x, y, np.zeros_like(x))]

    def kernel(a: Any, b: Any, c: Any) -> None:
        tl.composite("add", tl.ref(a, (50, 70)), tl.ref(b, (1, 70)), c, [("exp",)])

    result = launch(workspace, kernel, *placed)
    np.testing.assert_allclose(workspace.read(placed[2]), np.exp(x + y), rtol=1e-6)
    assert result.counters.commands == 1


@pytest.mark.parametrize("tile_shape", [(2, 3, 1), (1, 7, 1), (5, 1, 1), (4, 4, 1)])
def test_tiles_of_int4_that_share_bytes_keep_all_elements(
    workspace: Workspace, rng: np.random.Generator, tile_shape: tuple[int, ...]
) -> None:
    x, y = (rng.integers(-4, 4, (5, 7)).astype(int4.storage) for _ in range(2))
    placed = [workspace.place(values, PES) for values in (x, y, np.zeros((5, 7), int4.storage))]

    def kernel(a: Any, b: Any, c: Any) -> None:
        tl.composite("add", tl.ref(a, (5, 7)), tl.ref(b, (5, 7)), c, tile_shape=tile_shape)

    launch(workspace, kernel, *placed)
    expected = x.astype(np.int8) + y.astype(np.int8)
    np.testing.assert_array_equal(workspace.read(placed[2]).astype(np.int8), expected)


def test_a_ref_into_int4_begins_at_any_half_of_a_byte(workspace: Workspace) -> None:
    x = (np.arange(30) % 16 - 8).astype(int4.storage)
    placed = [workspace.place(values, PES) for values in (x, np.zeros(30, int4.storage))]

    def kernel(a: Any, c: Any) -> None:
        part = tl.ref(a + 3, (4, 5), strides=(6, 1))
        tl.composite("abs", part, None, tl.ref(c + 1, (4, 5)), tile_shape=(3, 2, 1))

    launch(workspace, kernel, *placed)
    rows = x.astype(np.int8)[3:27].reshape(4, 6)[:, :5]
    found = workspace.read(placed[1]).astype(np.int8)
    expected = np.concatenate([[0], np.abs(rows).reshape(-1), np.zeros(9)]).astype(np.int8)
    np.testing.assert_array_equal(found, np.where(expected == 8, -8, expected))


def test_a_product_of_int4_is_refused_with_what_the_unit_takes(workspace: Workspace) -> None:
    left, right = (np.zeros(shape, int4.storage) for shape in ((M, K), (K, N)))
    with pytest.raises(KernelTypeError, match=r"found dot.int4.*expected int8, uint8 or floats"):
        multiply(workspace, left, right)


def test_a_load_of_what_a_composite_writes_comes_after_it(
    workspace: Workspace, rng: np.random.Generator
) -> None:
    left, right = operands(rng)
    placed = [
        workspace.place(x, PES)
        for x in (left, right, np.zeros((M, N), np.float32), np.zeros((M, N), np.float32))
    ]

    def kernel(a: Any, b: Any, c: Any, d: Any) -> None:
        tl.composite("gemm", tl.ref(a, (M, K)), tl.ref(b, (K, N)), c, tile_shape=TILE)
        tl.store(tl.ref(d, (M, N)), tl.load(c, shape=(M, N)))

    launch(workspace, kernel, *placed)
    np.testing.assert_array_equal(workspace.read(placed[3]), in_order(left, right))


def test_times_are_the_same_without_values(workspace: Workspace, rng: np.random.Generator) -> None:
    left, right = operands(rng)

    def kernel(a: Any, b: Any, c: Any) -> None:
        tl.composite("gemm", tl.ref(a, (M, K)), tl.ref(b, (K, N)), c, tile_shape=TILE)

    def latency_ps(carries_data: bool) -> int:
        fresh = Workspace(workspace.machine)
        arrays = [fresh.place(x, PES) for x in (left, right, np.zeros((M, N), np.float32))]
        result = fresh.launch(kernel, *arrays, grid=(1,), pes=PES, carries_data=carries_data)
        return result.latency_ps

    assert latency_ps(carries_data=True) == latency_ps(carries_data=False)


def test_streamed_products_reach_nine_tenths_of_the_peak(workspace: Workspace) -> None:
    """The share of one PE in a product of 4096 cubed over the 128 PEs of a SIP."""
    m, n, k = 256, 512, 4096
    placed = [
        workspace.place(np.zeros(shape, np.float16), PES) for shape in ((m, k), (k, n), (m, n))
    ]

    def kernel(a: Any, b: Any, c: Any) -> None:
        tl.composite("gemm", tl.ref(a, (m, k)), tl.ref(b, (k, n)), c, tile_shape=(256, 256, 512))

    result = workspace.launch(kernel, *placed, grid=(1,), pes=PES, carries_data=False)
    ideal_ps = 2 * m * n * k * 10**12 // (8_192 * 10**9)
    assert ideal_ps < result.latency_ps < ideal_ps * 10 // 9


@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        ([("reluu",)], r"found 'reluu' as an epilogue.*did you mean relu"),
        ([("relu", None, "tile")], "found the scope 'tile', expected k_tile or output_tile"),
        ([("relu", 3.0)], "found an operand of 'relu', expected none"),
        ([("eq", 0.0)], r"a result int1\[40, 48\], expected fp32\[40, 48\]"),
        ([("exp", None, "kernel", 4)], "expected \\(name, operand, scope\\)"),
    ],
)
def test_an_epilogue_that_cannot_be_is_refused_before_anything_is_issued(
    workspace: Workspace, rng: np.random.Generator, epilogue: Any, message: str
) -> None:
    with pytest.raises((KernelError, KernelTypeError), match=message):
        multiply(workspace, *operands(rng), epilogue=epilogue)
    assert workspace.device.engine.statistics().now_ps == 0


def test_shapes_that_do_not_fit_are_named(machine: Machine) -> None:
    def refused(message: str, call: Callable[[Any], Any]) -> None:
        workspace = Workspace(machine)
        placed = workspace.place(np.zeros((8, 8), np.float32), PES)

        def kernel(a: Any) -> None:
            call(a)

        with pytest.raises(KernelError, match=message):
            workspace.launch(kernel, placed, grid=(1,), pes=PES)

    refused(
        r"found operands of shapes \(8, 4\), \(8, 8\), expected \(M, K\) and \(K, N\)",
        lambda a: tl.composite("gemm", tl.ref(a, (8, 4)), tl.ref(a, (8, 8)), a),
    )
    refused(
        r"found an output of shape \(4, 8\), expected the result's \(8, 8\)",
        lambda a: tl.composite("gemm", tl.ref(a, (8, 8)), tl.ref(a, (8, 8)), tl.ref(a, (4, 8))),
    )
    refused(
        "found 'gem' as the op of a composite.*did you mean gemm",
        lambda a: tl.composite("gem", tl.ref(a, (8, 8)), tl.ref(a, (8, 8)), a),
    )
    refused(
        "expected a ref or a block; name its shape with tl.ref",
        lambda a: tl.composite("gemm", a, tl.ref(a, (8, 8)), a),
    )


def test_an_output_tile_that_does_not_fit_the_registers_says_so(workspace: Workspace) -> None:
    placed = [workspace.place(np.zeros((512, 512), np.float16), PES) for _ in range(3)]

    def kernel(a: Any, b: Any, c: Any) -> None:
        whole = (512, 512)
        tl.composite("gemm", tl.ref(a, whole), tl.ref(b, whole), c, tile_shape=(512, 512, 64))

    with pytest.raises(KernelError, match=r"a result fp32\[512, 512\] of 1048576 bytes"):
        workspace.launch(kernel, *placed, grid=(1,), pes=PES)
