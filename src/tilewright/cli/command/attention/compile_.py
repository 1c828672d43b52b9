"""``tilewright attention compile``: the kernels of a flow as text."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from tilewright.attention.codegen import (
    Deal,
    Kernel,
    KernelFile,
    Merge,
    Scratch,
    Target,
    Tiling,
    compile_graph,
    kernel_key,
)
from tilewright.attention.flow import trace_flow
from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.passes import optimize_graph
from tilewright.attention.verify import geometries
from tilewright.cli.command.attention.option import GroupOption, HeadDimOption
from tilewright.cli.option import FlowArgument, NameOption, PageSizeOption
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.errors import UsageError
from tilewright.interop.vortex import find_flow
from tilewright.records.attention.flow import (
    AttentionCompileRecord,
    CompiledArray,
    CompiledKernel,
    FusionDecision,
    StageTraffic,
)

MAX_PAGES = 8192  # of a row, unless it is said


class Emit(StrEnum):
    """For whom the text is."""

    TRITON = "triton"  # a GPU: programs have tiles of pages and parts of lists
    MACHINE = "machine"  # workers with memories of their own: programs have whole rows


MostOption = Annotated[
    int | None,
    typer.Option(min=1, help="Pages that plans choose of a row at most: see selections."),
]


def compile_(
    flow: FlowArgument,
    name: NameOption = None,
    emit: Annotated[
        Emit, typer.Option(help="For a GPU, or for a machine whose workers have whole rows.")
    ] = Emit.TRITON,
    page_size: PageSizeOption = 16,
    head_dim: HeadDimOption = None,
    group: GroupOption = None,
    page_tile: Annotated[
        int | None,
        typer.Option(help="Most pages of a tile of values per page: 16, more on a machine."),
    ] = None,
    part_pages: Annotated[
        int | None, typer.Option(min=1, help="GPU: listed pages of one program of attention: 64.")
    ] = None,
    pages: Annotated[
        int | None,
        typer.Option(min=1, help="Machine: most pages of a row, or of a member's share: 8192."),
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="Machine: workers that share a row.")] = 1,
    deal: Annotated[
        Deal | None, typer.Option(help="Machine: which pages of a row a member has.")
    ] = None,
    most: MostOption = None,
    queues: Annotated[
        bool, typer.Option("--queues", help="Machine: members join their parts over queues.")
    ] = False,
    json: JsonOption = False,
) -> Outcome:
    """Print the kernels of a flow: plain Triton, one file.

    An op that has no kernel is an error that names it. --json adds what a launcher must know:
    grids, arrays, which stages share a kernel and why, and the bytes that each stage moves.

    tilewright attention compile quest > quest_kernels.py

    tilewright attention compile quest --emit machine --members 8 --deal dealt --queues
    """
    label, made = find_flow(flow, name=name)
    sizes = geometries(page_size=page_size, head_dim=head_dim, query_heads=group)
    graph = optimize_graph(trace_flow(made, sizes[made.kind], name=label))
    _check_options(emit, {"--pages": pages, "--deal": deal}, part_pages)
    target = _target(emit, MAX_PAGES if pages is None else pages, members, deal, queues)
    tiling = _tiling(graph, target, page_tile, part_pages)
    file = compile_graph(graph, tiling, target, most=most)
    if not json:
        print(file.text, end="")  # as it is: a view would be wrapped
        raise typer.Exit
    record = _record(flow, emit, graph, file, kernel_key(graph, tiling, target, most=most))
    return Outcome(record, Text(file.text))


def _check_options(emit: Emit, of_machine: Mapping[str, object], part_pages: int | None) -> None:
    """Refuse options that have no meaning for whom the text is."""
    given = [name for name, value in of_machine.items() if value is not None]
    if emit is Emit.TRITON and given:
        fix = "add --emit machine, or leave it out"
        raise UsageError("attention compile", ", ".join(given), "options of a GPU", fix)
    if emit is Emit.MACHINE and part_pages is not None:
        found, expected = f"--part-pages {part_pages}", "options of a machine"
        fix = "leave it out: a program has a whole row there"
        raise UsageError("attention compile", found, expected, fix)


def _target(emit: Emit, pages: int, members: int, deal: Deal | None, queues: bool) -> Target | None:
    if emit is Emit.TRITON:
        if members > 1 or deal is not None or queues:
            found, expected = "members of a row for a GPU", "--emit machine with them"
            raise UsageError("attention compile", found, expected, "add it, or leave them out")
        return None
    if queues and members == 1:
        found, fix = "--queues and one member", "say --members 2 or more, or leave --queues out"
        raise UsageError("attention compile", found, "members that join their parts", fix)
    merges = frozenset({Merge.MEMORY, *([Merge.IPCQ] if queues else [])})
    shared = deal or (Deal.DEALT if members > 1 else Deal.WHOLE)
    return Target(rows=1, pages=pages, members=members, deal=shared, merges=merges)


def _tiling(
    graph: Graph, target: Target | None, page_tile: int | None, part_pages: int | None
) -> Tiling:
    base = Tiling() if target is None else Tiling.for_target(graph.geometry, target)
    wanted = {"page_tile": page_tile, "part_pages": part_pages}
    given = {name: size for name, size in wanted.items() if size is not None}
    return Tiling(**{**asdict(base), **given})


def _record(
    source: str, emit: Emit, graph: Graph, file: KernelFile, key: str
) -> AttentionCompileRecord:
    return AttentionCompileRecord.of(
        file,
        source=source,
        emit=emit.value,
        graph_hash=graph_hash(graph),
        key=key,
        tiling=asdict(file.tiling),
        merge=file.merge.value,
        completion=None if file.completion is None else _kernel(file.completion),
        step=tuple(map(_kernel, file.step)),
        scratch=tuple(map(_array, file.scratch)),
        results=tuple(map(_array, file.results)),
        decisions=tuple(
            FusionDecision.of(
                item,
                fusion=item.choice.value,
                accepted=item.is_accepted,
                predicted_bytes=item.num_bytes,
            )
            for item in file.decisions
        ),
    )


def _kernel(kernel: Kernel) -> CompiledKernel:
    return CompiledKernel.of(
        kernel,
        grid=kernel.grid.value,
        stages=tuple(stage.value for stage in kernel.stages),
        traffic=tuple(StageTraffic.of(item, stage=item.stage.value) for item in kernel.traffic),
    )


def _array(item: Scratch) -> CompiledArray:
    return CompiledArray.of(item, axes=item.axis.value, dtype=item.dtype.value)
