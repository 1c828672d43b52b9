"""The launches of a step: grids, and the memory that lives as long as the step. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tilewright.attention.codegen import Grid, Kernel, KernelFile, Merge, Scratch, ScratchAxis
from tilewright.attention.graph import DType
from tilewright.errors import AttentionError

MERGES = frozenset({Merge.MEMORY})
"""The merges of split rows that this backend can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSizes:
    """``max_pages`` is of the longest row; ``num_blocks`` is of the pools."""

    num_requests: int
    num_kv_heads: int
    max_pages: int
    num_blocks: int

    @property
    def num_rows(self) -> int:
        return self.num_requests * self.num_kv_heads


@dataclass(frozen=True, slots=True)
class Buffer:
    name: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Launch:
    kernel: Kernel
    grid: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Launches in order, the memory they share, and the numbers that they are told."""

    launches: tuple[Launch, ...]
    buffers: tuple[Buffer, ...]
    numbers: tuple[tuple[str, int], ...]


def plan(kernels: KernelFile, sizes: StepSizes) -> LaunchPlan:
    """What a step of these sizes launches. Sizes may be larger than the rows at hand."""
    if kernels.merge not in MERGES:
        expected = f"one of {', '.join(sorted(MERGES))}"
        fix = "compile the flow for this backend"
        raise AttentionError(f"flow {kernels.flow!r}", f"a merge by {kernels.merge}", expected, fix)
    parts = max(-(-sizes.max_pages // kernels.tiling.part_pages), 1)
    arrays = (*kernels.scratch, *kernels.results)
    buffers = tuple(_buffer(item, sizes, parts) for item in arrays)
    return LaunchPlan(
        tuple(Launch(kernel, _grid(kernel, sizes, parts)) for kernel in kernels.step),
        buffers,
        (
            ("num_kv_heads", sizes.num_kv_heads),
            ("num_blocks", sizes.num_blocks),
            ("table_request", sizes.max_pages),
            ("table_head", 0),
            *(
                stride
                for item, buffer in zip(arrays, buffers, strict=True)
                for stride in _strides(item, buffer)
            ),
        ),
    )


def _grid(kernel: Kernel, sizes: StepSizes, parts: int) -> tuple[int, ...]:
    rows = sizes.num_rows
    match kernel.grid:
        case Grid.ROW_TILES:
            return rows, -(-sizes.max_pages // kernel.tile)
        case Grid.ROW_COLUMNS:
            return rows, kernel.tile
        case Grid.ROW_PARTS:
            return rows, parts
        case Grid.ROW_MEMBERS:
            return rows, 1
        case _:
            return (rows,)


def _strides(item: Scratch, buffer: Buffer) -> Iterator[tuple[str, int]]:
    """Elements from a row to the next, and from a part of it to the next."""
    yield f"{item.name}_row", prod(buffer.shape[1:])
    if item.axis is ScratchAxis.PARTS:
        yield f"{item.name}_member", prod(buffer.shape[2:])


def _buffer(item: Scratch, sizes: StepSizes, parts: int) -> Buffer:
    leading = {
        ScratchAxis.ROWS: (sizes.num_rows,),
        ScratchAxis.PAGES: (sizes.num_rows, sizes.max_pages),
        ScratchAxis.PARTS: (sizes.num_rows, parts),
    }[item.axis]
    return Buffer(item.name, (*leading, *item.shape), item.dtype)
