"""``tilewright attention list``, ``check`` and ``show``: flows, what they mean, what is wrong."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from tilewright.attention import flows
from tilewright.attention.flow import trace_flow
from tilewright.attention.flow.registry import get, list_keys
from tilewright.attention.flows.ready import flow_summary
from tilewright.attention.graph import FlowKind, graph_hash, graph_text
from tilewright.attention.passes import optimize_graph
from tilewright.attention.verify import check_flows, geometries
from tilewright.cli.command.attention.option import GroupOption, HeadDimOption
from tilewright.cli.option import FlowArgument, NameOption, PageSizeOption
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import printable
from tilewright.interop.vortex import find_flow, load_flows
from tilewright.records.attention.flow import (
    AttentionCheckRecord,
    AttentionListRecord,
    AttentionShowRecord,
    FlowCheckRow,
    ReadyFlow,
)
from tilewright.report.attention_svg import draw_graph
from tilewright.report.svg import write_svg

TITLES = {FlowKind.GQA: "Grouped-query attention", FlowKind.MLA: "Latent attention (MLA)"}


def summaries() -> list[tuple[str, str]]:
    """Return the names of ready flows, each with its rule."""
    return [(row.name, row.summary) for row in _flows()]


def list_() -> Outcome:
    """List the ready flows.

    By family, a line for each: its name and its rule. docs/flows.md says what they keep of a page,
    and from which papers they are; tilewright attention show NAME shows one.
    """
    record = AttentionListRecord(flows=_flows())
    return Outcome(record, _list_view(record))


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A flow file.")],
    page_size: PageSizeOption = 16,
    head_dim: HeadDimOption = None,
    group: GroupOption = None,
) -> Outcome:
    """Say what is wrong with the flows of a file, or doubtful.

    Every flow is traced. The file may import tilewright.attention or vortex_torch. Exit status 0:
    all flows are right, with warnings or without; 1: a flow is wrong; 2: the file cannot be loaded.
    """
    sizes = geometries(page_size=page_size, head_dim=head_dim, query_heads=group)
    rows = check_flows(load_flows(file), sizes)
    passed = all(row.ok for row in rows)
    record = AttentionCheckRecord(source=file, ok=passed, flows=rows)
    return Outcome(record, Group(*map(_check_view, rows)), passed)


def show(
    flow: FlowArgument,
    name: NameOption = None,
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


def _flows() -> tuple[ReadyFlow, ...]:
    ready = [name for name in list_keys() if get(name).__module__.startswith(flows.__name__)]
    return tuple(
        ReadyFlow(name=name, family=kind.value, summary=flow_summary(get(name)))
        for kind in TITLES
        for name in ready
        if get(name).kind is kind
    )


def _list_view(record: AttentionListRecord) -> Text:
    view = Text()
    width = max(len(row.name) for row in record.flows)
    for kind, title in TITLES.items():
        view.append(f"{title}\n", style="dim")
        for row in record.flows:
            if row.family == kind.value:
                view.append(f"  {row.name:<{width}}", style="bold")
                view.append(f"  {row.summary}\n")
        view.append("\n")
    return view.append("one of them: tilewright attention show NAME", style="dim")


def _check_view(row: FlowCheckRow) -> Text:
    """Return a Text, since brackets in a message are no markup."""
    lines = [f"{row.name} ({row.kind}): {'right' if row.ok else 'wrong'}"]
    for error in row.errors:
        lines += [f"  error: {error.where}", f"    found     {error.found}"]
        lines += [f"    expected  {error.expected}", f"    to do     {error.fix}"]
    for warning in row.warnings:
        place = f"{warning.line}: " if warning.line else ""
        lines.append(f"  warning: {place}{warning.text} [{warning.code}]")
    return Text("\n".join(lines))
