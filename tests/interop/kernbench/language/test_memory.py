"""Loads, stores and refs at byte addresses, and programs on several PEs."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.language.bed import FIRST, ONE_PE, PES, Array, launch, place, run
from tilewright.errors import AddressError, KernelError, SanitizerError
from tilewright.host import DPPolicy, RuntimeContext

RNG = np.random.default_rng(20)


def normal(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float16)


def test_a_gemm_on_one_pe_gives_numpys_product() -> None:
    def gemm(a_ptr: int, b_ptr: int, out_ptr: int, M: int, K: int, N: int, tl: Any) -> None:  # noqa: N803
        a = tl.load(a_ptr, (M, K), "f16")
        b = tl.load(ptr=b_ptr, shape=(K, N))
        assert (a.addr, a.shape, a.dtype, a.nbytes) == (a_ptr, (M, K), "f16", 2 * M * K)
        tl.store(out_ptr, tl.dot(a, b))

    a, b = normal(32, 128), normal(128, 32)
    out = run(gemm, a, b, np.zeros((32, 32), np.float16), args=(32, 128, 32))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(out - exact).max() <= 2.0**-10 * np.abs(exact).max()


@pytest.mark.parametrize("split", ["column_wise", "row_wise"])
def test_each_pe_reaches_its_part_of_a_split_weight_by_program_id(split: str) -> None:
    """A column split is column blocks one after the other, each row by row."""
    m, k, n = 16, 64, 32

    def columns(x_ptr: int, w_ptr: int, out_ptr: int, tl: Any) -> None:
        pe, part = tl.program_id(0), n // tl.num_programs(0)
        w = tl.load(w_ptr + pe * k * part * 2, (k, part), "f16")
        tl.store(out_ptr + pe * m * part * 2, tl.dot(tl.load(x_ptr, (m, k), "f16"), w))

    def rows(x_ptr: int, w_ptr: int, out_ptr: int, tl: Any) -> None:
        pe, part = tl.program_id(0), m // tl.num_programs(0)
        x = tl.load(x_ptr + pe * part * k * 2, (part, k), "f16")
        tl.store(out_ptr + pe * part * n * 2, tl.dot(x, tl.load(w_ptr, (k, n), "f16")))

    x, w = normal(m, k), normal(k, n)
    by_columns = split == "column_wise"
    whole, parts = DPPolicy(num_cubes=1), DPPolicy(num_cubes=1, pe=split)
    with RuntimeContext("ahbm-small") as torch:
        tensors = [
            place(torch, x, whole if by_columns else parts),
            place(torch, w, parts if by_columns else whole),
            place(torch, np.zeros((m, n), np.float16), parts),
        ]
        launch(torch, columns if by_columns else rows, *tensors, on=PES)
        out = np.asarray(tensors[-1].numpy())
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(out - exact).max() <= 2.0**-10 * np.abs(exact).max()


def test_a_pe_reads_the_shard_of_another_pe_and_takes_longer_for_it() -> None:
    x = normal(32, 64)
    seen = []

    def kernel(x_ptr: int, shard: int, tl: Any) -> None:
        seen.append(tl.load(x_ptr + shard * 1024, (8, 64), "f16").data)

    times = []
    for shard in (0, 3):
        with RuntimeContext("ahbm-small") as torch:
            source = place(torch, x, DPPolicy(num_cubes=1, pe="row_wise"))
            report = launch(torch, kernel, source, shard).report
            times.append(report.last_end_ps - report.first_start_ps)
        assert np.array_equal(seen[-1], x[8 * shard : 8 * shard + 8])
    assert times[1] > times[0]


def test_an_address_past_a_tensor_is_refused_with_the_line_and_the_tensor() -> None:
    def kernel(x_ptr: int, tl: Any) -> None:
        tl.load(x_ptr + 64, (8, 64), "f16")

    line = kernel.__code__.co_firstlineno + 1
    message = re.escape(
        f"{__file__}:{line} in kernel, program (0, 0, 0) of kernel on sip0.cube0.pe0"
    )
    found = re.escape("is 0 bytes behind the end of tensor t0 (fp16[8, 64])")
    with pytest.raises(AddressError, match=f"^{message}.*{found}"):
        run(kernel, normal(8, 64))


def test_a_loaded_number_is_an_offset_and_decides_a_branch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def kernel(table_ptr: int, x_ptr: int, out_ptr: int, tl: Any) -> None:
        page = tl.load(table_ptr, (1,), "i32")
        tile = tl.load(x_ptr + int(page) * 16, (8,), "f16")
        if tl.sum(tile) > 0:
            tile = tile * 2
        print(tile)  # noqa: T201
        tl.store(out_ptr, tile)

    pages = np.array([[-1.0] * 8, [3.0] * 8], np.float16)
    for page, expected in ((0, -1.0), (1, 6.0)):
        out = run(kernel, np.array([page], np.int32), pages, np.zeros(8, np.float16))
        assert (out == expected).all()
    assert "[6. 6. 6. 6. 6. 6. 6. 6.]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda tl, ptr: tl.store(tl.load(ptr, (4,), "f16"), ptr), "f16[4]> as an address"),
        (lambda tl, ptr: tl.load(tl.load(ptr, (1,), "f16"), (4,), "f16"), "f16[1]> as an address"),
        (lambda tl, ptr: tl.load(ptr + 0.5, (4,), "f16"), "of type float as an address"),
        (lambda tl, ptr: tl.ref(ptr), "without a shape, expected a shape; write tl.ref(ptr,"),
        (lambda tl, ptr: tl.load(ptr), "without a shape, expected a shape; write tl.load(ptr,"),
        (lambda tl, ptr: tl.load(tl.ref(ptr, (4,)), (2,)), "with the shape (2,), expected the ref"),
        (lambda tl, ptr: tl.store(ptr, 3), "3 of type int to store, expected a TensorHandle"),
    ],
)
def test_what_is_no_address_no_shape_and_no_tensor_is_refused(
    mistake: Callable[[Any, int], None], message: str
) -> None:
    def kernel(x_ptr: int, tl: Any) -> None:
        mistake(tl, x_ptr)

    with pytest.raises(KernelError, match=re.escape(message)):
        run(kernel, np.zeros(8, np.float16))


def test_a_store_writes_the_dtype_of_its_value() -> None:
    def kernel(out_ptr: int, tl: Any) -> None:
        tl.store(out_ptr, tl.full((4,), 1.5, "f32"))
        tl.store(out_ptr + 16, tl.arange(4))

    out = run(kernel, np.zeros(16, np.float16))
    assert np.array_equal(out[:8].view(np.float32), [1.5] * 4)
    assert np.array_equal(out[8:].view(np.int32), [0, 1, 2, 3])


@pytest.mark.parametrize("stride", [0, 16])
def test_stores_of_two_pes_to_the_same_bytes_are_a_race_without_tags_too(stride: int) -> None:
    def kernel(out_ptr: int, stride: int, tl: Any) -> None:
        tl.store(out_ptr + tl.program_id(0) * stride, tl.zeros((8,), "f16"))

    torch = RuntimeContext("ahbm-small", sanitize=True)
    out = place(torch, np.zeros(64, np.float16), ONE_PE, "out")
    launch(torch, kernel, out, stride, on=(FIRST, PES[1]))
    if stride:
        torch.findings.check()
        return
    with pytest.raises(SanitizerError, match=rf"(?s)race.*{re.escape(__file__)}"):
        torch.findings.check()
