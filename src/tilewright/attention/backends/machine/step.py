"""One decode step on a machine: the new token, the pages that it completes, then attention."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.generated import (
    LoadedKernels,
    StepResult,
    chosen_arguments,
    kernels_of,
)
from tilewright.attention.backends.machine.append import append_tokens
from tilewright.attention.backends.machine.layout import (
    Array,
    Int64s,
    Pieces,
    RowLayout,
    replicate,
    scratch_of,
    strides_of,
    write_marks,
)
from tilewright.attention.backends.machine.memory import NEW, DecodeMemory
from tilewright.attention.codegen import Grid, Kernel, Merge, Stage
from tilewright.attention.codegen.kernels.merge import tree_neighbours
from tilewright.attention.codegen.memory_form import parameter_tables
from tilewright.attention.planner import StepPlan, most_candidates, row_budgets, state_pages
from tilewright.errors import AttentionError
from tilewright.executor.post import Post
from tilewright.executor.quiet import rare_collections
from tilewright.host import LaunchReport, Neighbours, PeCoord, RuntimeContext, Tensor
from tilewright.runtime.launch.send import tell_rings

Int32s = npt.NDArray[np.int32]
NEXT = "_next"  # of memory that the next step has as its state
LIST = "page_list"  # with a suffix for each branch, where there are several
Owner = Callable[..., PeCoord]
Programs = tuple[tuple[int, ...], Owner]  # a grid, and who runs each program of it
Given = Mapping[str, Tensor | int | float]


@dataclass(frozen=True, slots=True)
class StageLaunch:
    """A launch of a step that is over, and the stages that share it."""

    report: LaunchReport
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStepResult(StepResult):
    """What a simulated step gives, and when; NumPy arrays."""

    launches: tuple[StageLaunch, ...]
    pages: tuple[Int64s, ...]  # logical pages that each row read, ascending
    kept: Mapping[str, tuple[Array, ...]]
    """What requests keep: the ``kept`` values of the next step; empty without values."""
    saved_pages: Int32s  # of each row: pages from 0 on that have saved state now


@dataclass(frozen=True, slots=True)
class _Planned:
    """A launch, ready to be sent."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    grid: tuple[int, ...]
    owner: Owner
    stages: tuple[Stage, ...]
    queues: Any = None  # between the members of a row


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """All memory of a step is taken and written; what is left takes simulated time."""

    memory: DecodeMemory
    scratch: Mapping[str, Pieces]
    planned: tuple[_Planned, ...]
    saved_pages: Int32s  # of each row, behind the step

    @rare_collections()
    def run(self, torch: RuntimeContext) -> MachineStepResult:
        """One launch after the other, each when the host knows of the end of the last."""
        launches = []
        for item in self.planned:
            options = {"grid": item.grid, "on": item.owner, "neighbours": item.queues}
            launch = torch.launch(item.function, name=item.name, **options, **item.arguments)
            launches.append(StageLaunch(launch.report, item.stages))
        output, log_sum_exp = (
            self.scratch[name].read()[:, 0] if torch.carries_data and name in self.scratch else None
            for name in ("output", "log_sum_exp")
        )
        return MachineStepResult(
            output=output,
            log_sum_exp=log_sum_exp,
            launches=tuple(launches),
            pages=self._pages_read(),
            kept=self._kept() if torch.carries_data else {},
            saved_pages=self.saved_pages,
        )

    def _kept(self) -> dict[str, tuple[Array, ...]]:
        """Of each request: [KV heads, pages, r, c]."""
        heads = self.memory.layout.num_kv_heads
        found = {}
        for name, pieces in self.memory.arrays.items():
            if not name.endswith(NEXT):
                continue
            rows = pieces.read()[:, 0]
            found[f"{name.removesuffix(NEXT)}_state"] = tuple(
                rows[request * heads : (request + 1) * heads, : len(blocks)]
                for request, blocks in enumerate(self.memory.blocks)
            )
        return found

    def _pages_read(self) -> tuple[Int64s, ...]:
        """From the lists of members, which name their own pages by place; without lists all."""
        layout = self.memory.layout
        suffixes = [name.removeprefix(LIST) for name in self.scratch if name.startswith(LIST)]
        if not suffixes:
            return tuple(
                np.arange(len(blocks), dtype=np.int64)
                for blocks in self.memory.blocks
                for _ in range(layout.num_kv_heads)
            )
        found: list[set[int]] = [set() for _ in range(layout.num_rows)]
        for suffix in suffixes:
            places = self.scratch[f"{LIST}{suffix}"].read()
            lengths = self.scratch[f"list_length{suffix}"].read()
            for row, member in product(range(layout.num_rows), range(layout.members)):
                own = places[row, member, : lengths[row, member]]
                found[row].update(layout.logical_pages(member, own).tolist())
        return tuple(np.array(sorted(pages), dtype=np.int64) for pages in found)


def prepare_step(
    torch: RuntimeContext,
    memory: DecodeMemory,
    kernels: LoadedKernels,
    plan: StepPlan,
    *,
    scale: float,
    marks: Sequence[Int64s] | None = None,
    saved_pages: Int32s | None = None,
) -> PreparedStep:
    """Take and write all memory of a step, outside of simulated time.

    ``marks`` are the pages that rows select where there are no scores. ``saved_pages`` are the
    pages of each row, from 0 on, whose state earlier steps saved; None: no step went before.
    """
    layout, graph, file = memory.layout, memory.graph, kernels.file
    requests = [  # whose last page gets its summaries: it is complete, or the flow wants it anyway
        index
        for index, count in enumerate(memory.num_tokens)
        if count % graph.geometry.page_size == 0 or graph.partial_pages
    ]
    _check_most(kernels, plan)
    scratch = scratch_of(torch, layout, file, max(map(len, memory.blocks)))
    if marks is not None:
        write_marks(layout, file, scratch, marks)
    given: dict[str, Tensor | int | float] = {
        **memory.arguments,
        **{name: pieces.tensor for name, pieces in scratch.items()},
        **strides_of(scratch),
        "first_reserved": plan.reserved.first,
        "last_reserved": plan.reserved.last,
        "scale": scale,
    }
    wanted = {name for kernel in kernels_of(file) for name in kernel.arguments}
    saved = np.zeros(plan.num_rows, dtype=np.int32) if saved_pages is None else saved_pages
    told = {
        **row_budgets(plan, graph),
        **parameter_tables(graph, layer=0),
        **_new_pages(memory, requests),
        "saved_pages": saved,
    }
    given |= replicate(torch, layout, {name: told[name] for name in told if name in wanted})
    queues = _queues(torch, layout) if file.merge is Merge.IPCQ else None
    planned = [_append(torch, memory), *_completion(memory, kernels, given, requests)]
    for kernel in file.step:
        programs = _programs(kernel, layout)
        planned.append(_planned(kernels, kernel, given, programs, kernel.stages, queues))
    advanced = np.maximum(saved, state_pages(plan, graph))
    return PreparedStep(memory, scratch, tuple(planned), advanced)


def _check_most(kernels: LoadedKernels, plan: StepPlan) -> None:
    """A plan may not choose more than the kernels keep of a segment of a row."""
    limit, most = kernels.file.most, most_candidates(plan)
    if limit is not None and most > limit:
        where, fix = f"kernels of {kernels.file.flow!r}", f"compile them for most={most}"
        found = f"a plan that chooses {most} candidates of a row"
        raise AttentionError(where, found, f"at most {limit}", fix)


def _queues(torch: RuntimeContext, layout: RowLayout) -> Post:
    """Rings between the members of every team of PEs, which stay from step to step."""
    table = {}
    for first in range(0, len(layout.used_pes), layout.members):
        team = layout.pes[first : first + layout.members]
        for member, directions in tree_neighbours(layout.members).items():
            table[team[member]] = {name: team[other] for name, other in directions.items()}
    neighbours = Neighbours(table)
    torch.driver.wait(tell_rings(torch.driver, "rings of members", neighbours))
    return torch.driver.launcher.install(neighbours)


def _append(torch: RuntimeContext, memory: DecodeMemory) -> _Planned:
    """The new token of every row goes into its page, at the owner of that page."""
    layout, geometry, given = memory.layout, memory.graph.geometry, memory.arguments
    size, fields = geometry.page_size, geometry.reserved_fields
    places = [
        (int(blocks[-1]), (count - 1) % size)
        for blocks, count in zip(memory.blocks, memory.num_tokens, strict=True)
    ]
    arguments = {
        "new": tuple(given[NEW.format(name)] for name in fields),
        "pools": tuple(given[f"{name}_pool"] for name in fields),
        "new_rows": tuple(given[f"{NEW.format(name)}_row"] for name in fields),
        "widths": tuple(width for _, width in fields.values()),
        "places": replicate(torch, layout, {"places": np.array(places, dtype=np.int64)})["places"],
        "num_kv_heads": layout.num_kv_heads,
        "num_blocks": layout.head_blocks,
        "page_size": size,
    }
    members = [layout.places_of(len(blocks) - 1)[0] for blocks in memory.blocks]

    def owner(row: int) -> PeCoord:
        return layout.pe_of(row, members[row // layout.num_kv_heads])

    grid = (layout.num_rows,)
    return _Planned("append_tokens", append_tokens, arguments, grid, owner, (Stage.COMPLETION,))


def _new_pages(memory: DecodeMemory, requests: list[int]) -> dict[str, Array]:
    """Of the pages to summarize: where they lie, their logical numbers, their tokens."""
    size = memory.graph.geometry.page_size
    pages = [len(memory.blocks[index]) - 1 for index in requests]
    tokens = [(memory.num_tokens[index] - 1) % size + 1 for index in requests]
    return {
        "new_blocks": np.array([memory.blocks[index][-1] for index in requests], dtype=np.int64),
        "new_pages": np.array(pages, dtype=np.int32),
        "new_tokens": np.array(tokens, dtype=np.int32),
    }


def _completion(
    memory: DecodeMemory, kernels: LoadedKernels, given: Given, requests: list[int]
) -> list[_Planned]:
    """The summaries of pages that the new tokens complete, at the owners of these pages."""
    layout, kernel = memory.layout, kernels.file.completion
    if kernel is None or not requests:
        return []
    members = [layout.places_of(len(memory.blocks[index]) - 1)[0] for index in requests]

    def owner(page: int, head: int) -> PeCoord:
        return layout.pe_of(requests[page] * layout.num_kv_heads + head, members[page])

    grid = (len(requests), layout.num_kv_heads)
    return [_planned(kernels, kernel, given, (grid, owner), (Stage.COMPLETION,))]


def _planned(
    kernels: LoadedKernels,
    kernel: Kernel,
    given: Given,
    programs: Programs,
    stages: tuple[Stage, ...],
    queues: Post | None = None,
) -> _Planned:
    arguments, function = chosen_arguments(kernel, given), kernels.functions[kernel.name]
    return _Planned(kernel.name, function, arguments, *programs, stages, queues)


def _programs(kernel: Kernel, layout: RowLayout) -> Programs:
    """The grid of a kernel, and who runs a program: a member of the row, or its home."""

    def home(row: int, _column: int = 0) -> PeCoord:
        return layout.pe_of(row)

    match kernel.grid:
        case Grid.ROW_MEMBERS:
            return (layout.num_rows, layout.members), layout.pe_of
        case Grid.ROW_COLUMNS:
            return (layout.num_rows, kernel.tile), home
        case Grid.ROWS:
            return (layout.num_rows,), home
        case Grid.NEW_PAGES | Grid.ROW_PARTS | Grid.ROW_TILES:
            where, fix = f"kernel {kernel.name}", "compile the flow for a target"
            raise AttentionError(where, f"programs of {kernel.grid}", "rows and members", fix)
