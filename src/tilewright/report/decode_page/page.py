"""Decode steps as one page: what they keep, how long they take, and why. Needs no other file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.machine.build import Machine
from tilewright.machine.node import LinkKind
from tilewright.report.decode_page.machine import draw_usage
from tilewright.report.decode_page.model import (
    DecodePage,
    ShownStep,
    ShownUsage,
    context_text,
)
from tilewright.report.decode_page.plot import draw_quality_over_latency, draw_stages, stage_names
from tilewright.report.format import (
    ends_text,
    short_bottleneck,
    short_bytes,
    short_latency,
    width_text,
)
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.style import render_page, themed, write_page
from tilewright.units import format_ps, share_text

MOST_BLOCKS = 12
NONE = "-"

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PageTable:
    """The first cell of a row names it; rows may come in groups with a line between them."""

    caption: str
    columns: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    words: Sequence[str] = ("bottleneck", "stage", "memory, link or unit")
    """Columns of words, which stand to the left; figures stand to the right."""


def page_tables(page: DecodePage) -> dict[str, PageTable]:
    """Return all tables of a page by the names that its template has for them."""
    return {
        "headline": _headline_table(page),
        "quality": _quality_table(page),
        "shares": _share_table(page),
        "stages": _stage_table(page),
        "usages": _usage_table(page),
    }


def _headline_table(page: DecodePage) -> PageTable:
    """The one table: quality, latency, speed-up, bytes, bottleneck; a row for each flow."""
    titles = ["flow", "needles", "mass kept", "output error"]
    for context in page.contexts:
        titles += [f"latency, {context_text(context)}", "speed-up"]
    rows = [_headline_row(page, flow) for flow in page.flows]
    longest = context_text(page.contexts[-1])
    caption = f"Decode attention: quality and time; bytes and bottleneck are those of {longest}"
    return PageTable(caption, [*titles, "bytes", "bottleneck"], [rows])


def _headline_row(page: DecodePage, flow: str) -> tuple[str, ...]:
    quality, steps = page.quality[flow], [page.step(flow, context) for context in page.contexts]
    needles = f"{quality.needles.found}/{quality.needles.planted}"
    cells = [needles, share_text(quality.mass), f"{quality.output_error:.3f}"]
    for step in steps:
        cells += [short_latency(step.attention.figure_ps), f"{step.speedup:.1f} x"]
    last = steps[-1].attention
    return flow, *cells, short_bytes(last.bytes), short_bottleneck(last.bottleneck_figures)


def _quality_table(page: DecodePage) -> PageTable:
    """The points of the plot, to the picosecond."""
    columns = (
        "flow", "context", "mass kept", "latency", "latency, ps", "half-width",
        "over refresh phases",
    )  # fmt: skip
    groups = [
        [
            (
                flow,
                context_text(context),
                f"{page.quality[flow].mass:.4f}",
                *_latency_cells(page.step(flow, context)),
            )
            for context in page.contexts
        ]
        for flow in page.flows
    ]
    return PageTable("Points of the plot", columns, groups)


def _latency_cells(step: ShownStep) -> tuple[str, ...]:
    figure_ps, phases = step.attention.figure_ps, step.attention.phases
    spread = (text or NONE for text in (width_text(phases), ends_text(phases)))
    return short_latency(figure_ps), f"{figure_ps:,}", *spread


def _share_table(page: DecodePage) -> PageTable:
    """The bars: a row for each step, a column for each stage."""
    names = stage_names(page.steps)
    groups = [
        [_share_row(page.step(flow, context), names) for flow in page.flows]
        for context in page.contexts
    ]
    return PageTable("Latency of stages", ("step", *names, "whole step"), groups)


def _share_row(step: ShownStep, names: Sequence[str]) -> tuple[str, ...]:
    found = {stage.name: stage.latency_ps for stage in step.attention.stages}
    cells = (short_latency(found[name]) if name in found else NONE for name in names)
    return step.label, *cells, short_latency(step.attention.latency_ps)


def _stage_table(page: DecodePage) -> PageTable:
    """Each stage's latency, and its bytes beside the ideal ones."""
    columns = ("step", "stage", "latency", "share", "bytes", "ideal bytes", "ratio")
    names = stage_names(page.steps)
    return PageTable("Stages", columns, [_stage_rows(step, names) for step in page.steps])


def _stage_rows(step: ShownStep, order: Sequence[str]) -> Rows:
    rows = []
    for stage in sorted(step.attention.stages, key=lambda stage: order.index(stage.name)):
        share = stage.latency_ps / step.attention.latency_ps
        ratio = f"{stage.bytes / stage.ideal_bytes:.2f}" if stage.ideal_bytes else NONE
        rows.append(
            (
                step.label,
                stage.name,
                format_ps(stage.latency_ps),
                share_text(share),
                f"{stage.bytes:,}",
                f"{stage.ideal_bytes:,}",
                ratio,
            )
        )
    return rows


def _usage_table(page: DecodePage) -> PageTable:
    """The busiest blocks of each step, and how many links were idle."""
    columns = ("step", "memory, link or unit", "in use")
    groups = [_usage_rows(usage, page.machine) for usage in page.usages]
    return PageTable("The busiest", columns, groups)


def _usage_rows(usage: ShownUsage, machine: Machine) -> Rows:
    busiest = sorted(usage.shares.items(), key=lambda item: (-item[1], item[0]))[:MOST_BLOCKS]
    rows = [(usage.label, name, share_text(share)) for name, share in busiest if share > 0]
    crossing = [
        usage.shares.get(machine.link_name(number), 0.0)
        for number, link in enumerate(machine.links)
        if link.kind is LinkKind.DIE_TO_DIE
    ]
    if crossing:
        mean = share_text(sum(crossing) / len(crossing))
        rows.append((usage.label, "all links between dies, mean", mean))
    return rows


def write_decode_page(path: Path, page: DecodePage) -> None:
    """Write the page whole or not at all; an older file is replaced in one step."""
    write_page(path, decode_page_text(page))


def decode_page_text(page: DecodePage) -> str:
    """Return HTML that is also well-formed XML; equal pages give equal bytes."""
    return render_page(
        "decode_page.html",
        title=page.title,
        page=page,
        tables=page_tables(page),
        quality=themed(draw_quality_over_latency(page)),
        stages=themed(draw_stages(page)),
        usages=[themed(draw_usage(usage, page.machine)) for usage in page.usages],
        machine=draw_machine(page.machine),
    )
