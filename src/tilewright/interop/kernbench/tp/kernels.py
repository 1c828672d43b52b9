"""Kernels of tensor-parallel layers, in KernBench's kernel dialect: one PE works."""

from typing import Any

from tilewright.interop.kernbench.dtype import dtype_itemsize


def linear_kernel(
    x_ptr: int,
    w_ptr: int,
    out_ptr: int,
    m: int,
    k: int,
    n: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
) -> None:
    """Write x (m, k) times w (k, n); the weight is streamed tile by tile."""
    if tl.program_id(0) == 0 and tl.program_id(1) == 0:
        x = tl.load(x_ptr, (m, k), DTYPE)
        w = tl.ref(w_ptr, (k, n), DTYPE)
        tl.wait(tl.composite(op="gemm", a=x, b=w, out_ptr=out_ptr))


def copy_columns_kernel(
    source_ptr: int,
    target_ptr: int,
    rows: int,
    columns: int,
    source_columns: int,
    target_columns: int,
    source_first: int,
    target_first: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
) -> None:
    """Copy ``columns`` neighbouring columns of a matrix into another, row by row."""
    if tl.program_id(0) == 0 and tl.program_id(1) == 0:
        size = dtype_itemsize(DTYPE)
        for row in range(rows):
            source = source_ptr + (row * source_columns + source_first) * size
            target = target_ptr + (row * target_columns + target_first) * size
            tl.store(target, tl.load(source, (columns,), DTYPE))
