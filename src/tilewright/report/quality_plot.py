"""Quality over bytes: a line for each flow through its budgets, and the front that nobody beats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.records import check_target
from tilewright.records.attention_compare import AttentionCompareRecord, Interval95, QualityRow
from tilewright.report.quality_table import quality_view
from tilewright.report.svg import Svg, shorten, write_svg

__all__ = ("check_quality_plot", "draw_quality", "write_quality_plot")

MARGIN, HEAD, LEGEND_WIDTH = 16, 64, 240
PANEL_WIDTH, PANEL_HEIGHT, PANEL_STRIDE = 380, 300, 460
PANEL_AT = 64
TICKS = 5
GRID, FRAME, PALE, FRONT = "#e2e8f0", "#94a3b8", "#475569", "#0f172a"
COLOURS = (
    "#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#64748b",
)  # fmt: skip
MARK = 7  # side of the square of a point
FRONT_MARK = 13


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure over bytes; an axis goes from 0 to its top."""

    title: str
    value: Callable[[QualityRow], float]
    interval: Callable[[QualityRow], Interval95]
    left: float
    most_bytes: float
    most: float

    def x(self, row: QualityRow) -> float:
        return self.left + PANEL_WIDTH * _share_of_bytes(row) / self.most_bytes

    def y(self, value: float) -> float:
        return HEAD + PANEL_HEIGHT * (1 - min(max(value / self.most, 0.0), 1.0))


def check_quality_plot(path: Path) -> None:
    """Refuse, before any work is done, a file that the plot cannot become."""
    if path.suffix.lower() not in (".svg", ".html"):
        found, fix = f"a plot called {path.name!r}", "rename it"
        raise RecordError(str(path), found, "a name that ends in .svg or .html", fix)
    check_target(path, "plot")


def write_quality_plot(path: Path, record: AttentionCompareRecord) -> None:
    """A picture alone, or a page of picture and table that needs no other file."""
    drawn = draw_quality(record)
    write_svg(path, drawn if path.suffix.lower() == ".svg" else _page(record, drawn))


def draw_quality(record: AttentionCompareRecord) -> str:
    """The text of an SVG file; equal records give equal bytes."""
    panels = _panels(record.rows)
    width = PANEL_AT + PANEL_STRIDE * len(panels) + LEGEND_WIDTH
    height = HEAD + PANEL_HEIGHT + 64
    svg = Svg(width, height, _title(record))
    svg.rect(0, 0, width, height, fill="#ffffff")
    svg.text(MARGIN, 22, _title(record), size=16, anchor="start", bold=True)
    flows = list(dict.fromkeys(row.flow for row in record.rows))
    colours = {flow: COLOURS[place % len(COLOURS)] for place, flow in enumerate(flows)}
    for panel in panels:
        _add_axes(svg, panel)
        for flow, rows in groupby(record.rows, key=lambda row: row.flow):
            _add_flow(svg, panel, colours[flow], list(rows))
    if panels:
        _add_front(svg, panels[0], record.rows)
    _add_legend(svg, PANEL_AT + PANEL_STRIDE * len(panels), colours)
    return svg.render()


def _title(record: AttentionCompareRecord) -> str:
    sizes = record.sizes
    return f"{record.source.name}, {sizes.context} tokens, pages of {sizes.page_size}"


def _panels(rows: Sequence[QualityRow]) -> tuple[Panel, ...]:
    if not rows:
        return ()
    most_bytes = max(1.0, *map(_share_of_bytes, rows))
    mass = Panel(
        "attention mass (front dashed)", lambda row: row.mass, lambda row: row.mass_ci,
        PANEL_AT, most_bytes, 1.0,
    )  # fmt: skip
    if any(row.kl is None for row in rows):
        return (mass,)
    most = max(row.kl or 0.0 for row in rows) or 1.0
    kl = Panel(
        "next-token KL", lambda row: row.kl or 0.0, lambda row: row.kl_ci,
        PANEL_AT + PANEL_STRIDE, most_bytes, most,
    )  # fmt: skip
    return mass, kl


def _share_of_bytes(row: QualityRow) -> float:
    return row.bytes / row.dense_bytes


def _add_axes(svg: Svg, panel: Panel) -> None:
    svg.text(panel.left, HEAD - 14, panel.title, size=13, anchor="start")
    for tick in range(TICKS + 1):
        part = tick / TICKS
        y, x = panel.y(panel.most * part), panel.left + PANEL_WIDTH * part
        svg.line([(panel.left, y), (panel.left + PANEL_WIDTH, y)], stroke=GRID, width=1)
        label = f"{panel.most * part:.2f}"
        svg.text(panel.left - 6, y, label, size=11, anchor="end", fill=PALE)
        label = f"{panel.most_bytes * part:.2f}"
        svg.text(x, HEAD + PANEL_HEIGHT + 14, label, size=11, fill=PALE)
    svg.rect(panel.left, HEAD, PANEL_WIDTH, PANEL_HEIGHT, fill="none", stroke=FRAME)
    middle = panel.left + PANEL_WIDTH / 2
    below = HEAD + PANEL_HEIGHT + 36
    svg.text(middle, below, "bytes of a step, of what dense attention reads", size=12, fill=PALE)


def _add_flow(svg: Svg, panel: Panel, colour: str, rows: Sequence[QualityRow]) -> None:
    ordered = sorted(rows, key=lambda row: row.budget)
    points = [(panel.x(row), panel.y(panel.value(row))) for row in ordered]
    svg.line(points, stroke=colour, width=1.5)
    for row, (x, y) in zip(ordered, points, strict=True):
        interval = panel.interval(row)
        if interval is not None:
            svg.line([(x, panel.y(interval[0])), (x, panel.y(interval[1]))], stroke=colour, width=1)
        tip = f"{row.flow}, {row.budget} pages: {panel.value(row):.3f}"
        svg.rect(x - MARK / 2, y - MARK / 2, MARK, MARK, fill=colour, tip=tip)


def _add_front(svg: Svg, panel: Panel, rows: Sequence[QualityRow]) -> None:
    front = sorted((row for row in rows if row.is_pareto), key=lambda row: (row.bytes, row.mass))
    points = [(panel.x(row), panel.y(row.mass)) for row in front]
    svg.line(points, stroke=FRONT, width=1, dash="5 4")
    for x, y in points:
        half = FRONT_MARK / 2
        svg.rect(x - half, y - half, FRONT_MARK, FRONT_MARK, fill="none", stroke=FRONT)


def _add_legend(svg: Svg, left: float, colours: dict[str, str]) -> None:
    for place, (flow, colour) in enumerate(colours.items()):
        y = HEAD + 10 + 22 * place
        svg.rect(left, y - 6, 12, 12, fill=colour)
        svg.text(left + 18, y, shorten(flow, LEGEND_WIDTH - 40, size=12), size=12, anchor="start")


def _page(record: AttentionCompareRecord, drawn: str) -> str:
    title, table = escape(_title(record)), escape(quality_view(record).plain)
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    body = f"<body>\n{drawn}<pre>\n{table}\n</pre>\n</body>"
    return f'<!doctype html>\n<html lang="en">{head}\n{body}</html>\n'
