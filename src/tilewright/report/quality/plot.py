"""Quality over cost: a line for each flow through its budgets, and the Pareto front.

Cost is time where machines were given, a panel for each of them; else it is bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.records.attention.compare import AttentionCompareRecord, Interval95, QualityRow
from tilewright.report.plot import Plot, label_points, legend_mark, open_plot, set_log_scale
from tilewright.report.quality.table import quality_view
from tilewright.report.style import (
    COLOURS,
    render_page,
    series_mark,
    series_role,
    themed,
    write_page,
)
from tilewright.report.svg import shorten, write_svg
from tilewright.units import PS_PER_US

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN, TOP, BOTTOM = 16, 88, 72
PANEL_AT, PANEL_WIDTH, PANEL_HEIGHT, PANEL_STRIDE = 72, 400, 340, 488
LEGEND_WIDTH, LEGEND_ROW = 260, 24
FRONT = COLOURS["ink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One figure over one cost, of the rows that have both."""

    title: str
    cost_title: str
    unit: str
    rows: tuple[QualityRow, ...]
    value: Callable[[QualityRow], float] = lambda row: row.mass
    interval: Callable[[QualityRow], Interval95] = lambda row: row.mass_ci
    cost: Callable[[QualityRow], float]
    costs: tuple[float, ...]  # that the axis has to show: panels side by side have one scale
    dense: float | None = None  # the cost of dense attention, if it is to be drawn
    is_mass: bool = True


def draw_quality(record: AttentionCompareRecord) -> str:
    """Return the text of an SVG file; equal records give equal bytes."""
    panels = _panels(record)
    flows = list(dict.fromkeys(row.flow for row in record.rows))
    legend_at = PANEL_AT + PANEL_STRIDE * len(panels) - 48
    height = TOP + max(PANEL_HEIGHT, LEGEND_ROW * (len(flows) + 2)) + BOTTOM
    with open_plot(legend_at + LEGEND_WIDTH, height, _title(record)) as plot:
        plot.text(MARGIN, 26, _title(record), fontsize=18, fontweight="bold")
        for index, panel in enumerate(panels):
            left = PANEL_AT + PANEL_STRIDE * index
            axes = plot.axes(left, TOP, PANEL_WIDTH, PANEL_HEIGHT)
            _set_up(axes, panel)
            _add_dense(plot, axes, panel)
            for flow, rows in groupby(panel.rows, key=lambda row: row.flow):
                _add_flow(plot, axes, panel, flows.index(flow), list(rows))
            if panel.is_mass:
                _add_front(plot, axes, panel)
            _label(axes, panel, flows)
        if panels:
            _add_legend(plot, axes, legend_at, flows)
        return plot.render()


def write_quality_plot(path: Path, record: AttentionCompareRecord) -> None:
    """Write a picture alone, or a page of picture and table that needs no other file."""
    drawn = draw_quality(record)
    if path.suffix.lower() == ".svg":
        write_svg(path, drawn)
        return
    table = quality_view(record).plain
    values = {"title": _title(record), "picture": themed(drawn), "table": table}
    write_page(path, render_page("quality.html", **values))


def _title(record: AttentionCompareRecord) -> str:
    """Name what was compared."""
    sizes = record.sizes
    return f"{record.source.name}, {sizes.context} tokens, pages of {sizes.page_size}"


def _panels(record: AttentionCompareRecord) -> list[_Panel]:
    if record.latency is not None:
        machines = groupby(record.rows, key=lambda row: row.machine)
        return [_time_panel(record.rows, str(name), list(rows)) for name, rows in machines]
    if not record.rows:
        return []

    def cost(row: QualityRow) -> float:
        return row.bytes / row.dense_bytes

    mass = _Panel(
        title="attention mass (front dashed)",
        cost_title="bytes of a step, of what dense attention reads",
        unit="of its bytes",
        rows=record.rows,
        cost=cost,
        costs=tuple(map(cost, record.rows)),
    )
    if any(row.kl is None for row in record.rows):
        return [mass]
    kl = replace(
        mass, title="next-token KL", value=lambda row: row.kl or 0.0,
        interval=lambda row: row.kl_ci, is_mass=False,
    )  # fmt: skip
    return [mass, kl]


def _time_panel(all_rows: Sequence[QualityRow], machine: str, rows: Sequence[QualityRow]) -> _Panel:
    times_ps = [time_ps for row in all_rows for time_ps in (row.latency_ps, row.dense_latency_ps)]
    dense_ps = rows[0].dense_latency_ps
    return _Panel(
        title=f"attention mass on {machine} (front dashed)",
        cost_title="time of one layer's attention for one token, in us",
        unit="us",
        rows=tuple(row for row in rows if row.latency_ps is not None),
        cost=lambda row: (row.latency_ps or 0) / PS_PER_US,
        costs=tuple(time_ps / PS_PER_US for time_ps in times_ps if time_ps is not None),
        dense=None if dense_ps is None else dense_ps / PS_PER_US,
    )


def _set_up(axes: "Axes", panel: _Panel) -> None:
    axes.set_title(shorten(panel.title, PANEL_WIDTH, size=14, bold=True))
    axes.set_xlabel(panel.cost_title, labelpad=10)
    set_log_scale(axes, "x", panel.costs or (1.0,), lambda cost: f"{cost:.3g}")
    values = [panel.value(row) for row in panel.rows]
    values += [end for row in panel.rows for end in panel.interval(row) or ()]
    values += [1.0] if panel.dense is not None else []
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.08 * (high - low) or 0.05
    axes.set_ylim(low - room, min(high + room, 1.02) if panel.is_mass else high + room)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.2f}")


def _add_dense(plot: Plot, axes: "Axes", panel: _Panel) -> None:
    """Add a line where dense attention is; its mass is 1."""
    if panel.dense is None:
        return
    line = axes.axvline(panel.dense, color=COLOURS["pale"], linestyle=":", linewidth=1.5)
    plot.tip(line, f"dense attention: {panel.dense:.4g}")
    axes.annotate(
        "dense", (panel.dense, 0), (-6, 10), xycoords=("data", "axes fraction"),
        textcoords="offset pixels", ha="right", color=COLOURS["pale"],
    )  # fmt: skip


def _add_flow(
    plot: Plot, axes: "Axes", panel: _Panel, index: int, rows: Sequence[QualityRow]
) -> None:
    ordered = sorted(rows, key=lambda row: row.budget)
    colour = COLOURS[series_role(index)]
    costs = [panel.cost(row) for row in ordered]
    axes.plot(costs, [panel.value(row) for row in ordered], color=colour)
    for row, cost in zip(ordered, costs, strict=True):
        interval = panel.interval(row)
        if interval is not None:
            axes.vlines(cost, *interval, color=colour, linewidth=1.2)
        at = f"{panel.value(row):.3f} at {cost:.4g} {panel.unit}"
        tip = f"{row.flow}, {row.budget} pages: {at}"
        plot.mark(axes, cost, panel.value(row), series_mark(index), colour, tip)


def _add_front(plot: Plot, axes: "Axes", panel: _Panel) -> None:
    front = [row for row in panel.rows if row.is_pareto]
    front.sort(key=lambda row: (panel.cost(row), row.mass))
    points = [(panel.cost(row), row.mass) for row in front]
    for row, (cost, mass) in zip(front, points, strict=True):
        tip = f"on the front: {row.flow}, {row.budget} pages"
        plot.mark(axes, cost, mass, "s", FRONT, tip, markersize=15, markerfacecolor="none")
    if panel.dense is not None:
        points.append((panel.dense, 1.0))
    if points:
        axes.plot(*zip(*points, strict=True), color=FRONT, linestyle="--", linewidth=1.2, zorder=1)


def _label(axes: "Axes", panel: _Panel, flows: Sequence[str]) -> None:
    """Label points with budgets, first those of the front: there may not be room for all."""
    rows = sorted(panel.rows, key=lambda row: not row.is_pareto)
    label_points(
        axes,
        [
            (panel.cost(row), panel.value(row), str(row.budget),
             COLOURS[series_role(flows.index(row.flow))])
            for row in rows
        ],
    )  # fmt: skip


def _add_legend(plot: Plot, axes: "Axes", left: float, flows: Sequence[str]) -> None:
    entries = [
        (legend_mark(axes, f"{series_mark(index)}-", COLOURS[series_role(index)]), flow)
        for index, flow in enumerate(flows)
    ]
    plot.legend(left, TOP, entries, width=LEGEND_WIDTH - 56)
    below = TOP + LEGEND_ROW * (len(flows) + 0.5)
    plot.text(left, below, "a number at a mark: pages to read", role="pale")
