"""Quality over cost: a line for each flow through its budgets, and the front that nobody beats.

Cost is time where machines were given, a panel for each of them; else it is bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.records import check_target
from tilewright.records.attention_compare import AttentionCompareRecord, Interval95, QualityRow
from tilewright.report.quality.axis import TICKS, Axis, bytes_axis, latency_axis
from tilewright.report.quality.table import quality_view
from tilewright.report.svg import Svg, shorten, write_svg

__all__ = ("check_quality_plot", "draw_quality", "write_quality_plot")

MARGIN, HEAD, LEGEND_WIDTH = 16, 64, 240
PANEL_WIDTH, PANEL_HEIGHT, PANEL_STRIDE = 380, 300, 460
PANEL_AT = 64
GRID, FRAME, PALE, FRONT = "#e2e8f0", "#94a3b8", "#475569", "#0f172a"
COLOURS = (
    "#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#64748b",
)  # fmt: skip
MARK = 7  # side of the square of a point
FRONT_MARK = 13


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure over one cost, of the rows that have it; both axes begin at 0."""

    title: str
    rows: tuple[QualityRow, ...]
    value: Callable[[QualityRow], float]
    interval: Callable[[QualityRow], Interval95]
    left: float
    axis: Axis
    most: float
    has_front: bool

    def x(self, cost: float) -> float:
        return self.left + PANEL_WIDTH * cost / self.axis.most

    def y(self, value: float) -> float:
        return HEAD + PANEL_HEIGHT * (1 - min(max(value / self.most, 0.0), 1.0))

    def point(self, row: QualityRow) -> tuple[float, float]:
        return self.x(self.axis.cost(row)), self.y(self.value(row))


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
    panels = _panels(record)
    width = PANEL_AT + PANEL_STRIDE * len(panels) + LEGEND_WIDTH
    height = HEAD + PANEL_HEIGHT + 64
    svg = Svg(width, height, _title(record))
    svg.rect(0, 0, width, height, fill="#ffffff")
    svg.text(MARGIN, 22, _title(record), size=16, anchor="start", bold=True)
    flows = list(dict.fromkeys(row.flow for row in record.rows))
    colours = {flow: COLOURS[place % len(COLOURS)] for place, flow in enumerate(flows)}
    for panel in panels:
        _add_axes(svg, panel)
        _add_dense(svg, panel)
        for flow, rows in groupby(panel.rows, key=lambda row: row.flow):
            _add_flow(svg, panel, colours[flow], list(rows))
        if panel.has_front:
            _add_front(svg, panel)
    _add_legend(svg, PANEL_AT + PANEL_STRIDE * len(panels), colours)
    return svg.render()


def _title(record: AttentionCompareRecord) -> str:
    sizes = record.sizes
    return f"{record.source.name}, {sizes.context} tokens, pages of {sizes.page_size}"


def _panels(record: AttentionCompareRecord) -> tuple[Panel, ...]:
    if not record.rows:
        return ()
    if record.latency is None:
        return _bytes_panels(record.rows)
    found = []
    for place, (machine, group) in enumerate(groupby(record.rows, key=lambda row: row.machine)):
        rows = list(group)
        left, title = PANEL_AT + PANEL_STRIDE * place, f"attention mass on {machine} (front dashed)"
        timed = tuple(row for row in rows if row.latency_ps is not None)
        axis = latency_axis(record.rows, rows[0].dense_latency_ps)
        found.append(_mass_panel(title, timed, left, axis))
    return tuple(found)


def _bytes_panels(rows: tuple[QualityRow, ...]) -> tuple[Panel, ...]:
    axis = bytes_axis(rows)
    mass = _mass_panel("attention mass (front dashed)", rows, PANEL_AT, axis)
    if any(row.kl is None for row in rows):
        return (mass,)
    most = max(row.kl or 0.0 for row in rows) or 1.0
    kl = Panel(
        "next-token KL", rows, lambda row: row.kl or 0.0, lambda row: row.kl_ci,
        PANEL_AT + PANEL_STRIDE, axis, most, has_front=False,
    )  # fmt: skip
    return mass, kl


def _mass_panel(title: str, rows: tuple[QualityRow, ...], left: float, axis: Axis) -> Panel:
    return Panel(
        title, rows, lambda row: row.mass, lambda row: row.mass_ci, left, axis, 1.0, has_front=True
    )


def _add_axes(svg: Svg, panel: Panel) -> None:
    title = shorten(panel.title, PANEL_WIDTH, size=13)
    svg.text(panel.left, HEAD - 14, title, size=13, anchor="start")
    for tick in range(TICKS + 1):
        part = tick / TICKS
        y, x = panel.y(panel.most * part), panel.left + PANEL_WIDTH * part
        svg.line([(panel.left, y), (panel.left + PANEL_WIDTH, y)], stroke=GRID, width=1)
        label = f"{panel.most * part:.2f}"
        svg.text(panel.left - 6, y, label, size=11, anchor="end", fill=PALE)
        label = panel.axis.label(panel.axis.most * part)
        svg.text(x, HEAD + PANEL_HEIGHT + 14, label, size=11, fill=PALE)
    svg.rect(panel.left, HEAD, PANEL_WIDTH, PANEL_HEIGHT, fill="none", stroke=FRAME)
    middle = panel.left + PANEL_WIDTH / 2
    svg.text(middle, HEAD + PANEL_HEIGHT + 36, panel.axis.title, size=12, fill=PALE)


def _add_dense(svg: Svg, panel: Panel) -> None:
    """Where dense attention is, if that is known; its mass is 1."""
    if panel.axis.dense is None:
        return
    x = panel.x(panel.axis.dense)
    tip = f"dense attention: {panel.axis.label(panel.axis.dense)}"
    svg.line([(x, HEAD), (x, HEAD + PANEL_HEIGHT)], stroke=PALE, width=1, dash="2 3", tip=tip)
    svg.text(x - 4, HEAD + PANEL_HEIGHT - 10, "dense", size=11, anchor="end", fill=PALE)


def _add_flow(svg: Svg, panel: Panel, colour: str, rows: Sequence[QualityRow]) -> None:
    ordered = sorted(rows, key=lambda row: row.budget)
    points = [panel.point(row) for row in ordered]
    svg.line(points, stroke=colour, width=1.5)
    for row, (x, y) in zip(ordered, points, strict=True):
        interval = panel.interval(row)
        if interval is not None:
            svg.line([(x, panel.y(interval[0])), (x, panel.y(interval[1]))], stroke=colour, width=1)
        cost = f"{panel.axis.label(panel.axis.cost(row))} {panel.axis.unit}"
        tip = f"{row.flow}, {row.budget} pages: {panel.value(row):.3f} at {cost}"
        svg.rect(x - MARK / 2, y - MARK / 2, MARK, MARK, fill=colour, tip=tip)


def _add_front(svg: Svg, panel: Panel) -> None:
    front = [row for row in panel.rows if row.is_pareto]
    front.sort(key=lambda row: (panel.axis.cost(row), row.mass))
    points = [panel.point(row) for row in front]
    dense = [] if panel.axis.dense is None else [(panel.x(panel.axis.dense), panel.y(1.0))]
    svg.line([*points, *dense], stroke=FRONT, width=1, dash="5 4")
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
