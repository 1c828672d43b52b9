"""STREAM: copy, scale, add and triad, which only move memory."""

from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.host import LocalShard, LocalSize, RuntimeContext
from tilewright.programs.bound import Path, Work, bound_of, sum_bounds
from tilewright.programs.contract import BenchOutcome, BenchProgram, row_error, tolerance_of
from tilewright.programs.inputs import (
    Array,
    Cubes,
    Draw,
    Dtype,
    Pes,
    Sips,
    check_shares,
    check_sizes,
    deploy,
    reserve,
    team_of,
)
from tilewright.programs.parameter import ProgramFit, fit_shares

FACTOR = 3.0
WORK = ((1, ()), (1, ("mul",)), (2, ("add",)), (2, ("mul", "add")))
"""Of each launch: arrays that are read, and what is done with an element."""


def copy_kernel(a_ptr: Any, out_ptr: Any, size: int, block: int) -> None:
    """out = a"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        tl.store(out_ptr + first, tl.load(a_ptr + first, shape=shape))


def scale_kernel(a_ptr: Any, out_ptr: Any, factor: float, size: int, block: int) -> None:
    """out = factor a"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a = tl.load(a_ptr + first, shape=shape)
        tl.store(out_ptr + first, factor * a)


def add_kernel(a_ptr: Any, b_ptr: Any, out_ptr: Any, size: int, block: int) -> None:
    """out = a + b"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a, b = (tl.load(pointer + first, shape=shape) for pointer in (a_ptr, b_ptr))
        tl.store(out_ptr + first, a + b)


def triad_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, factor: float, size: int, block: int
) -> None:
    """out = a + factor b"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a, b = (tl.load(pointer + first, shape=shape) for pointer in (a_ptr, b_ptr))
        tl.store(out_ptr + first, a + factor * b)


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
    reports, bounds = [], []
    for number, (step, (num_reads, ops)) in enumerate(zip(steps, WORK, strict=True)):
        name, kernel, tensors, *factor = step
        arguments = (*map(LocalShard, tensors), *factor, size, block)
        reports.append(torch.launch(name, kernel, *arguments).report)
        work = Work(
            num_pes=team.num_pes,
            read_bytes=num_reads * values.nbytes,
            written_bytes=values.nbytes,
            elements=dict.fromkeys(ops, elements),
        )
        path = Path(pes=reports[-1].pes, computes=bool(ops), walks=number == 0, opens=number == 0)
        bounds.append(bound_of(torch.machine, work, path))
    found = [each.numpy(timed=False) for each in (a, b, c)] if torch.carries_data else None
    return BenchOutcome(
        bound=sum_bounds(bounds),
        launches=tuple(reports),
        max_error=row_error(np.stack(found, axis=-1), _stream(values)) if found else None,
        tolerance=tolerance_of(dtype),
    )


def _stream(values: Array) -> Array:
    """Return the three arrays as they are in the end; a row has one element of each."""
    wide = values.astype(np.float64)
    b = FACTOR * wide
    c = wide + b
    return np.stack([b + FACTOR * c, b, c], axis=-1)


PROGRAMS = (
    BenchProgram(
        "stream",
        "copy, scale, add and triad: bound by the HBM",
        _run,
        fit=ProgramFit(counts=fit_shares("elements"), tiles=(("block",),), sizes=(("elements",),)),
    ),
)
