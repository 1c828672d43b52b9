"""A decode step on a GPU: its launches and their memory as a plan, then run on torch tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

from tilewright.attention.backends.generated import (
    LoadedKernels,
    StepResult,
    chosen_arguments,
    run_text,
)
from tilewright.attention.codegen import Grid, Kernel, KernelFile, Merge, ScratchAxis
from tilewright.attention.graph import DType
from tilewright.errors import AttentionError, MissingExtraError

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
    rows, parts = sizes.num_rows, max(-(-sizes.max_pages // kernels.tiling.part_pages), 1)
    leading = {
        ScratchAxis.ROWS: (rows,),
        ScratchAxis.PAGES: (rows, sizes.max_pages),
        ScratchAxis.PARTS: (rows, parts),
    }
    numbers = {
        "num_kv_heads": sizes.num_kv_heads,
        "num_blocks": sizes.num_blocks,
        "table_request": sizes.max_pages,
        "table_head": 0,
    }
    buffers = []
    for item in (*kernels.scratch, *kernels.results):
        shape = (*leading[item.axis], *item.shape)
        buffers.append(Buffer(item.name, shape, item.dtype))
        numbers[f"{item.name}_row"] = prod(shape[1:])  # elements from a row to the next
        if item.axis is ScratchAxis.PARTS:
            numbers[f"{item.name}_member"] = prod(shape[2:])
    launches = tuple(Launch(kernel, _grid(kernel, sizes, parts)) for kernel in kernels.step)
    return LaunchPlan(launches, tuple(buffers), tuple(numbers.items()))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonStepResult(StepResult):
    """What a step on a GPU gives, as torch tensors."""

    lists: tuple[tuple[Any, Any], ...]
    """Of each branch that reads pages: int32 [rows, pages], and how many of them count."""

    def pages(self, row: int) -> list[int]:
        """The logical pages that some branch read for a row, ascending."""
        found: set[int] = set()
        for pages, lengths in self.lists:
            found.update(pages[row, : int(lengths[row])].tolist())
        return sorted(found)


def import_library(name: str) -> Any:
    """torch or triton, or an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError("triton backend", name, "bench") from error


def load_kernels(file: KernelFile) -> LoadedKernels:
    """Run the text of a file under triton, which reads the source of kernels."""
    import_library("triton")
    return run_text(file, {})


def complete(kernels: LoadedKernels, arguments: Mapping[str, Any]) -> None:
    """Write the summaries of pages that became complete; ``new_blocks`` says where they lie."""
    kernel = kernels.file.completion
    if kernel is None:
        return
    pools = [value for name, value in arguments.items() if name.endswith("_pool")]
    _check_interpreted(kernels, arguments)
    grid = (len(arguments["new_blocks"]), len(pools[0]))
    if grid[0]:
        given = dict(arguments) | {"num_blocks": pools[0].shape[1]}
        kernels.functions[kernel.name][grid](**_chosen(kernel, given))


def run(kernels: LoadedKernels, plan: LaunchPlan, arguments: Mapping[str, Any]) -> TritonStepResult:
    """One decode step of all rows.

    ``arguments`` are the inputs (``q_in``), pools (``k_pool``, ...), ``num_tokens_ptr``,
    ``block_table``, the arrays of `row_budgets`, ``first_reserved``, ``last_reserved``, ``scale``,
    and what the flow asks for: ``layer``, ``step_ptr``, tables of parameters (``x_table``), state
    as the last step left it (``x_state``) and memory for the next (``x_next``, which the caller
    passes as ``x_state`` then). ``saved_pages`` are the pages of each row, from 0 on, that earlier
    steps saved: 0 at first, then the larger one of itself and of ``state_pages`` at each step.
    ``kept_pages`` are the same of each request for what ops remember: its complete pages at the
    last step. Tensors lie on one device and are contiguous.
    """
    _check_interpreted(kernels, arguments)
    _check_plan(kernels, arguments)
    torch = import_library("torch")
    device = arguments["q_in"].device
    memory = {
        item.name: torch.empty(
            item.shape, dtype=getattr(torch, item.dtype.array_name), device=device
        )
        for item in plan.buffers
    }
    given = {**arguments, **memory, **dict(plan.numbers), **_row_strides(arguments)}
    for launch in plan.launches:
        kernel = launch.kernel
        kernels.functions[kernel.name][launch.grid](**_chosen(kernel, given))
    lists = [item.name for item in kernels.file.results if item.name.startswith("page_list")]
    return TritonStepResult(
        output=memory["output"],
        log_sum_exp=memory.get("log_sum_exp"),
        lists=tuple(
            (memory[name], memory[name.replace("page_list", "list_length")]) for name in lists
        ),
    )


def _row_strides(arguments: Mapping[str, Any]) -> dict[str, int]:
    """Elements from a row to the next: of inputs [requests, KV heads, ...], and of [rows, ...]."""
    inputs = {name: value for name, value in arguments.items() if name.endswith("_in")}
    kept = {name: value for name, value in arguments.items() if name.endswith(("_state", "_next"))}
    found = {f"{name}_row": prod(value.shape[2:]) for name, value in inputs.items()}
    return found | {f"{name}_row": prod(value.shape[1:]) for name, value in kept.items()}


def _chosen(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    arguments = chosen_arguments(kernel, given)
    for name, value in arguments.items():
        is_contiguous = getattr(value, "is_contiguous", None)
        if is_contiguous is not None and not is_contiguous():
            where, fix = f"kernel {kernel.name}", f"pass {name}.contiguous()"
            raise AttentionError(where, f"{name} with gaps", "a contiguous tensor", fix)
    return arguments


def _check_plan(kernels: LoadedKernels, arguments: Mapping[str, Any]) -> None:
    """A share of all scores needs kernels that were compiled for it."""
    wanted = arguments.get("by_mass")
    takes = any("by_mass" in kernel.arguments for kernel in kernels.file.step)
    planned = any("at_most" in kernel.arguments for kernel in kernels.file.step)
    if planned and not takes and wanted is not None and bool(wanted.any()):
        where, fix = f"flow {kernels.file.flow!r}", "compile_graph(graph, by_mass=True)"
        raise AttentionError(where, "a plan by mass", "kernels that know one", fix)
    if kernels.file.most is not None and planned:
        _check_most(kernels, arguments, kernels.file.most)


def _check_most(kernels: LoadedKernels, arguments: Mapping[str, Any], limit: int) -> None:
    """No row may choose more than the kernels keep of a segment, but for one that takes all."""
    size = kernels.file.geometry.page_size
    at_most, tokens = arguments["at_most"].tolist(), arguments["num_tokens_ptr"].tolist()
    reserved = arguments["first_reserved"] + arguments["last_reserved"]
    heads = len(at_most) // len(tokens)
    for row, most in enumerate(at_most):
        candidates = -(-tokens[row // heads] // size) - reserved
        if limit < most < candidates:
            where, fix = f"row {row}", f"compile_graph(graph, most={most})"
            found = f"a budget of {most} candidates"
            raise AttentionError(where, found, f"at most {limit}, as the kernels expect", fix)


def _check_interpreted(kernels: LoadedKernels, arguments: Mapping[str, Any]) -> None:
    if not import_library("triton").knobs.runtime.interpret:
        return
    for name, value in arguments.items():
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":
            raise AttentionError(
                f"flow {kernels.file.flow!r}, {name}",
                "bfloat16 under TRITON_INTERPRET=1",
                "float32 or float16: NumPy, which computes there, has no bfloat16",
                "use a GPU, or compile the flow for another type",
            )
