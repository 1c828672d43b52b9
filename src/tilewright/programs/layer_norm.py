"""Layer norm of the rows of a matrix, with weight and bias."""

from typing import Annotated

import numpy as np

from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw, Dtype
from tilewright.programs.fit import ProgramFit, fit_shares
from tilewright.programs.kernels.row import layer_norm_kernel
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_shares, check_sizes
from tilewright.programs.team import Array, Cubes, Pes, deploy, reserve, team_of

EPS = 1e-5


def _run(
    torch: RuntimeContext,
    rows: Annotated[int, "of the matrix, split over the PEs"] = 2048,
    columns: Annotated[int, "of the matrix"] = 1024,
    block_rows: Annotated[int, "rows that are in the TCM at a time"] = 8,
    dtype: Dtype = "f16",
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    team, draw = team_of(torch, cubes=cubes, pes=pes), Draw(torch)
    check_sizes("layer_norm", columns=columns, block_rows=block_rows)
    check_shares("layer_norm", team, rows=rows)
    values = draw.normal((rows, columns), dtype)
    weights, biases = (draw.normal((columns,), dtype) for _ in range(2))
    x = deploy(torch, "x", values, team.split(0))
    weight = deploy(torch, "weight", weights, team.policy())
    bias = deploy(torch, "bias", biases, team.policy())
    out = reserve(torch, "out", values.shape, dtype, team.split(0))
    tensors = map(LocalShard, (x, weight, bias, out))
    report = torch.launch(
        layer_norm_kernel, *tensors, LocalSize(x, 0), columns, block_rows, EPS
    ).report
    size = values.size
    work = Work(
        num_pes=team.num_pes,
        read_bytes=values.nbytes + team.num_pes * (weights.nbytes + biases.nbytes),
        written_bytes=values.nbytes,
        # two sums; the difference, its square, its scale, the weight, the bias
        elements={"sum": 2 * size, "sub": size, "mul": 3 * size, "add": size},
    )
    return measured(
        torch,
        (report,),
        bound_of(torch.machine, work, Path(pes=report.pes)),
        error=lambda: row_error(out.numpy(timed=False), _layer_norm(values, weights, biases)),
        tolerance=tolerance_of(dtype),
    )


def _layer_norm(values: Array, weights: Array, biases: Array) -> Array:
    wide, weight, bias = (array.astype(np.float64) for array in (values, weights, biases))
    centred = wide - wide.mean(1, keepdims=True)
    scale = 1.0 / np.sqrt((centred**2).mean(1, keepdims=True) + EPS)
    result: Array = centred * scale * weight + bias
    return result


LAYER_NORM = BenchProgram(
    "layer_norm",
    "layer norm of the rows of a matrix, rows over PEs",
    _run,
    fit=ProgramFit(
        counts=fit_shares("rows"),
        tiles=(("block_rows",), ("columns",)),
        sizes=(("rows", "columns"),),
    ),
)
