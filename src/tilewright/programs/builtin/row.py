"""Softmax and layer norm of the rows of a matrix, rows over PEs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work
from tilewright.programs.contract import (
    BenchOutcome,
    BenchProgram,
    measured,
    row_error,
    tolerance_of,
)
from tilewright.programs.inputs import (
    Array,
    Cubes,
    Draw,
    Dtype,
    Pes,
    check_shares,
    check_sizes,
    deploy,
    reserve,
    team_of,
)
from tilewright.programs.parameter import ProgramFit, fit_shares

EPS = 1e-5


def softmax_kernel(x_ptr: Any, out_ptr: Any, rows: int, columns: int, block_rows: int) -> None:
    """exp(x - max) over its sum, in each row."""
    for first in range(0, rows, block_rows):
        shape = (min(block_rows, rows - first), columns)
        x = tl.load(x_ptr + first * columns, shape=shape).to(tl.float32)
        weights = tl.exp(x - tl.max(x, 1)[:, None])
        scaled = weights * (1.0 / tl.sum(weights, 1))[:, None]
        tl.store(out_ptr + first * columns, scaled.to(out_ptr.dtype.element_ty))


def layer_norm_kernel(
    x_ptr: Any, weight_ptr: Any, bias_ptr: Any, out_ptr: Any,
    rows: int, columns: int, block_rows: int, eps: float,
) -> None:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) * weight + bias, in each row."""
    weight = tl.load(weight_ptr, shape=(columns,)).to(tl.float32)
    bias = tl.load(bias_ptr, shape=(columns,)).to(tl.float32)
    for first in range(0, rows, block_rows):
        shape = (min(block_rows, rows - first), columns)
        x = tl.load(x_ptr + first * columns, shape=shape).to(tl.float32)
        centred = x - (tl.sum(x, 1) / columns)[:, None]
        scale = tl.rsqrt(tl.sum(centred * centred, 1) / columns + eps)
        normed = centred * scale[:, None] * weight[None, :] + bias[None, :]
        tl.store(out_ptr + first * columns, normed.to(out_ptr.dtype.element_ty))


def _softmax(values: Array) -> Array:
    weights = np.exp(values - values.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True))


def _layer_norm(values: Array, weight: Array, bias: Array) -> Array:
    centred = values - values.mean(1, keepdims=True)
    scale = 1.0 / np.sqrt((centred**2).mean(1, keepdims=True) + EPS)
    return np.asarray(centred * scale * weight + bias)


@dataclass(frozen=True, slots=True)
class _RowOp:
    """A function of each row: its kernel, and its reference on arrays of float64."""

    kernel: Callable[..., None]
    reference: Callable[..., Array]  # of the matrix and the vectors
    ops: Mapping[str, int]  # on each element, how often
    vectors: tuple[str, ...] = ()  # of a row's length, which all PEs have
    constants: tuple[float, ...] = ()  # of the kernel


def _row_program(name: str, summary: str, op: _RowOp) -> BenchProgram:
    def run(
        torch: RuntimeContext,
        rows: Annotated[int, "of the matrix, split over the PEs"] = 2048,
        columns: Annotated[int, "of the matrix"] = 1024,
        block_rows: Annotated[int, "rows that are in the TCM at a time"] = 8,
        dtype: Dtype = "f16",
        cubes: Cubes = 1,
        pes: Pes = 0,
    ) -> BenchOutcome:
        team, draw = team_of(torch, cubes=cubes, pes=pes), Draw(torch)
        check_sizes(name, columns=columns, block_rows=block_rows)
        check_shares(name, team, rows=rows)
        values = draw.normal((rows, columns), dtype)
        vectors = {vector: draw.normal((columns,), dtype) for vector in op.vectors}
        x = deploy(torch, "x", values, team.split(0))
        copies = [deploy(torch, *vector, team.policy()) for vector in vectors.items()]
        out = reserve(torch, "out", values.shape, dtype, team.split(0))
        report = torch.launch(
            op.kernel, *map(LocalShard, (x, *copies, out)),
            LocalSize(x, 0), columns, block_rows, *op.constants,
        ).report  # fmt: skip
        inputs = (values, *vectors.values())
        work = Work(
            num_pes=team.num_pes,
            read_bytes=values.nbytes + team.num_pes * sum(array.nbytes for array in inputs[1:]),
            written_bytes=values.nbytes,
            elements={each: count * values.size for each, count in op.ops.items()},
        )
        return measured(
            torch,
            report,
            work,
            lambda: row_error(
                out.numpy(timed=False), op.reference(*(each.astype(np.float64) for each in inputs))
            ),
            tolerance=tolerance_of(dtype),
        )

    fit = ProgramFit(
        counts=fit_shares("rows"),
        tiles=(("block_rows",), ("columns",)),
        sizes=(("rows", "columns"),),
    )
    return BenchProgram(name, summary, run, fit=fit)


PROGRAMS = (
    _row_program(
        "softmax",
        "softmax of the rows of a matrix, rows over PEs",
        _RowOp(softmax_kernel, _softmax, dict.fromkeys(("max", "sub", "exp", "sum", "mul"), 1)),
    ),
    _row_program(
        "layer_norm",
        "layer norm of the rows of a matrix, rows over PEs",
        _RowOp(
            layer_norm_kernel,
            _layer_norm,
            # two sums; the difference, its square, its scale, the weight, the bias
            {"sum": 2, "sub": 1, "mul": 3, "add": 1},
            ("weight", "bias"),
            (EPS,),
        ),
    ),
)
