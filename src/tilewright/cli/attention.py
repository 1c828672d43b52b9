"""``tilewright attention``: flows of sparse attention, checked and shown."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tilewright.attention.flow import trace_flow
from tilewright.attention.graph import graph_hash, graph_text
from tilewright.attention.passes import optimize_graph
from tilewright.attention.verify import check_flows, geometries
from tilewright.cli.arguments import FlowArgument
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import printable
from tilewright.interop.vortex import find_flow, load_flows
from tilewright.records.attention.flow import (
    AttentionCheckRecord,
    AttentionShowRecord,
    FlowCheckRow,
)
from tilewright.report.attention_svg import draw_graph
from tilewright.report.svg import write_svg

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A flow file.")]
PageSizeOption = Annotated[int, typer.Option(min=1, help="Tokens of a page.")]
HeadDimOption = Annotated[
    int | None,
    typer.Option(min=1, help="Width of a key: 128, or 576 for the latents of MLA flows."),
]
GroupOption = Annotated[
    int | None,
    typer.Option(min=1, help="Query heads that share a KV head: 4, or 16 for MLA flows."),
]


def check(
    file: FileArgument,
    page_size: PageSizeOption = 16,
    head_dim: HeadDimOption = None,
    group: GroupOption = None,
    _json: JsonOption = False,
) -> Outcome:
    """Say what is wrong with the flows of a file, or doubtful.

    Every flow is traced. The file may import tilewright.attention or vortex_torch. Exit status 0:
    all flows are right, with warnings or without; 1: a flow is wrong; 2: the file cannot be loaded.
    """
    sizes = geometries(page_size=page_size, head_dim=head_dim, query_heads=group)
    rows = check_flows(load_flows(file), sizes)
    passed = all(row.ok for row in rows)
    return Outcome(AttentionCheckRecord(source=file, ok=passed, flows=rows), _view(rows), passed)


def show(
    flow: FlowArgument,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which flow of a file with several.")
    ] = None,
    optimized: Annotated[
        bool, typer.Option("--optimized", help="Show the graph after all passes.")
    ] = False,
    page_size: PageSizeOption = 16,
    head_dim: HeadDimOption = None,
    group: GroupOption = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the graph into FILE.")
    ] = None,
    json: JsonOption = False,
) -> Outcome:
    """Show what a flow means: fields, state and both programs.

    A line for each value.

    tilewright attention show quest

    tilewright attention show mine.py --optimized --svg mine.svg
    """
    label, made = find_flow(flow, name=name)
    sizes = geometries(page_size=page_size, head_dim=head_dim, query_heads=group)
    graph = trace_flow(made, sizes[made.kind], name=label)
    shown = optimize_graph(graph) if optimized else graph
    text = graph_text(shown)
    if svg is not None:
        write_svg(svg, draw_graph(shown))
    if not json:
        print(printable(text), end="")  # as it is: a view would be wrapped
        raise typer.Exit
    record = AttentionShowRecord(
        source=flow,
        flow=label,
        optimized=optimized,
        graph_hash=graph_hash(shown),
        text=text,
        svg=None if svg is None else str(svg),
    )
    return Outcome(record, Text(text))


def _view(rows: tuple[FlowCheckRow, ...]) -> RenderableType:
    return Group(*map(_row_view, rows))


def _row_view(row: FlowCheckRow) -> Text:
    """A Text, since brackets in a message are no markup."""
    lines = [f"{row.name} ({row.kind}): {'right' if row.ok else 'wrong'}"]
    for error in row.errors:
        lines += [f"  error: {error.where}", f"    found     {error.found}"]
        lines += [f"    expected  {error.expected}", f"    to do     {error.fix}"]
    for warning in row.warnings:
        place = f"{warning.line}: " if warning.line else ""
        lines.append(f"  warning: {place}{warning.text} [{warning.code}]")
    return Text("\n".join(lines))
