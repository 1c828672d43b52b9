"""Softmax of the rows of a matrix."""

from typing import Annotated

import numpy as np

from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw, Dtype
from tilewright.programs.fit import ProgramFit, fit_shares
from tilewright.programs.kernels.row import softmax_kernel
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_shares, check_sizes
from tilewright.programs.team import Array, Cubes, Pes, deploy, reserve, team_of


def _run(
    torch: RuntimeContext,
    rows: Annotated[int, "of the matrix, split over the PEs"] = 2048,
    columns: Annotated[int, "of the matrix"] = 1024,
    block_rows: Annotated[int, "rows that are in the TCM at a time"] = 8,
    dtype: Dtype = "f16",
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    team = team_of(torch, cubes=cubes, pes=pes)
    check_sizes("softmax", columns=columns, block_rows=block_rows)
    check_shares("softmax", team, rows=rows)
    values = Draw(torch).normal((rows, columns), dtype)
    x = deploy(torch, "x", values, team.split(0))
    out = reserve(torch, "out", values.shape, dtype, team.split(0))
    report = torch.launch(
        softmax_kernel, LocalShard(x), LocalShard(out), LocalSize(x, 0), columns, block_rows
    ).report
    size = values.size
    work = Work(
        num_pes=team.num_pes,
        read_bytes=values.nbytes,
        written_bytes=values.nbytes,
        elements={"max": size, "sub": size, "exp": size, "sum": size, "mul": size},
    )
    return measured(
        torch,
        (report,),
        bound_of(torch.machine, work, Path(pes=report.pes)),
        error=lambda: row_error(out.numpy(timed=False), _softmax(values)),
        tolerance=tolerance_of(dtype),
    )


def _softmax(values: Array) -> Array:
    wide = values.astype(np.float64)
    weights = np.exp(wide - wide.max(1, keepdims=True))
    result: Array = weights / weights.sum(1, keepdims=True)
    return result


SOFTMAX = BenchProgram(
    "softmax",
    "softmax of the rows of a matrix, rows over PEs",
    _run,
    fit=ProgramFit(
        counts=fit_shares("rows"),
        tiles=(("block_rows",), ("columns",)),
        sizes=(("rows", "columns"),),
    ),
)
