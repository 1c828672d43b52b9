"""STREAM: copy, scale, add and triad, which only move memory."""

from typing import Annotated, Any

import numpy as np

from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Work, bound_of, sum_bounds
from tilewright.programs.check import row_error, tolerance_of
from tilewright.programs.contract import BenchOutcome, BenchProgram
from tilewright.programs.draw import Draw, Dtype
from tilewright.programs.fit import ProgramFit, fit_shares
from tilewright.programs.kernels.stream import (
    add_kernel,
    copy_kernel,
    scale_kernel,
    triad_kernel,
)
from tilewright.programs.latency import Path
from tilewright.programs.measure import measured
from tilewright.programs.size import check_shares, check_sizes
from tilewright.programs.team import Array, Cubes, Pes, Sips, deploy, reserve, team_of

FACTOR = 3.0
WORK = ((1, ()), (1, ("mul",)), (2, ("add",)), (2, ("mul", "add")))
"""Of each launch: arrays that are read, and what is done with an element."""


def _run(
    torch: RuntimeContext,
    elements: Annotated[int, "of each of the three arrays, split over the PEs"] = 2**21,
    block: Annotated[int, "elements that are in the TCM at a time"] = 8192,
    dtype: Dtype = "f32",
    sips: Sips = 1,
    cubes: Cubes = 1,
    pes: Pes = 0,
) -> BenchOutcome:
    """c = a, b = 3 c, c = a + b, a = b + 3 c: one launch each."""
    team = team_of(torch, sips=sips, cubes=cubes, pes=pes)
    check_sizes("stream", block=block)
    check_shares("stream", team, elements=elements)
    values = Draw(torch).normal((elements,), dtype)
    a = deploy(torch, "a", values, team.split(0))
    b, c = (reserve(torch, name, values.shape, dtype, team.split(0)) for name in ("b", "c"))
    steps: tuple[tuple[Any, ...], ...] = (
        ("copy", copy_kernel, (a, c)),
        ("scale", scale_kernel, (c, b), FACTOR),
        ("add", add_kernel, (a, b, c)),
        ("triad", triad_kernel, (b, c, a), FACTOR),
    )
    size = LocalSize(a, 0)
    reports = [
        torch.launch(name, kernel, *map(LocalShard, tensors), *factor, size, block).report
        for name, kernel, tensors, *factor in steps
    ]
    bounds = [
        bound_of(
            torch.machine,
            Work(
                num_pes=team.num_pes,
                read_bytes=num_reads * values.nbytes,
                written_bytes=values.nbytes,
                elements=dict.fromkeys(ops, elements),
            ),
            Path(pes=report.pes, computes=bool(ops), walks=not number, opens=not number),
        )
        for number, (report, (num_reads, ops)) in enumerate(zip(reports, WORK, strict=True))
    ]
    return measured(
        torch,
        reports,
        sum_bounds(bounds),
        error=lambda: row_error(
            np.stack([tensor.numpy(timed=False) for tensor in (a, b, c)], axis=-1), _stream(values)
        ),
        tolerance=tolerance_of(dtype),
    )


def _stream(values: Array) -> Array:
    """The three arrays as they are in the end; a row has one element of each."""
    wide = values.astype(np.float64)
    b = FACTOR * wide
    c = wide + b
    return np.stack([b + FACTOR * c, b, c], axis=-1)


STREAM = BenchProgram(
    "stream",
    "copy, scale, add and triad: bound by the HBM",
    _run,
    fit=ProgramFit(counts=fit_shares("elements"), tiles=(("block",),), sizes=(("elements",),)),
)
