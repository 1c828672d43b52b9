"""Bandwidth and latency over size, as a probe found them: one line per case, its bound dashed.

Related cases share a row of two panels; all panels of a kind have the same axes, so that rows can
be compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tilewright.records import ProbeRecord, ProbeRow
from tilewright.report.plot import Plot, legend_mark, open_plot, set_log_scale
from tilewright.report.style import COLOURS, series_mark, series_role
from tilewright.units import format_bytes, format_ps

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

WIDTH, TOP, MARGIN = 1120, 72, 16
PANEL_WIDTH, PANEL_HEIGHT, ROW_HEIGHT = 370, 240, 336
HEAD = 32  # of a row, above its panels
LEGEND_AT, LEGEND_WIDTH, LEGEND_ROW = 924, 160, 24
STUB = 16.0  # length of the bound of a case with one size
MAX_CASES = 8  # of a row
BAND = 5.0  # lines that coincide lie in a band so wide: what is drawn first is widest

Group = list[tuple[str, list[ProbeRow]]]


def _groups(rows: Sequence[ProbeRow]) -> list[Group]:
    """Group cases whose names begin with one word; cases alone with theirs share a group."""
    by_case = {case: list(found) for case, found in groupby(rows, key=lambda row: row.case)}
    together: list[Group] = []
    alone: Group = []
    for _, names in groupby(by_case, key=lambda case: case.split("_")[0]):
        group = [(case, sorted(by_case[case], key=lambda row: row.bytes)) for case in names]
        if len(group) == 1:
            alone += group
        else:
            together.append(group)
    if alone:
        together.append(alone)
    return [
        group[first : first + MAX_CASES]
        for group in together
        for first in range(0, len(group), MAX_CASES)
    ]


@dataclass(frozen=True, slots=True)
class _Panel:
    """One kind of figure: what it is, its bound, and how it is said."""

    title: str
    left: float
    found: Callable[[ProbeRow], float]
    bound: Callable[[ProbeRow], float]
    label: Callable[[float], str]
    tip: Callable[[ProbeRow], str]


PANELS = (
    _Panel(
        title="bandwidth of all issuers, GB/s",
        left=76,
        found=lambda row: row.bandwidth_gbs,
        bound=lambda row: row.bound_gbs,
        label=lambda rate: f"{rate:,.10g}",
        tip=lambda row: f"{row.bandwidth_gbs:,.1f} GB/s, at most {row.bound_gbs:,.1f}",
    ),
    _Panel(
        title="latency",
        left=532,
        found=lambda row: row.figure_ps,
        bound=lambda row: row.bound_ps,
        label=lambda time_ps: format_ps(round(time_ps)),
        tip=lambda row: f"{format_ps(row.figure_ps)}, at least {format_ps(row.bound_ps)}",
    ),
)


def draw_probe(record: ProbeRecord) -> str:
    """Return the text of an SVG file; equal records give equal bytes."""
    groups = _groups(record.cases)
    height = TOP + ROW_HEIGHT * max(1, len(groups)) + MARGIN
    with open_plot(WIDTH, height, f"probe of {record.machine}") as plot:
        plot.text(MARGIN, 26, f"Probe of {record.machine}", fontsize=18, fontweight="bold")
        plot.text(MARGIN, 52, _source(record), role="pale")
        if not record.cases:
            plot.text(WIDTH / 2, TOP + PANEL_HEIGHT / 2, "no case ran", role="pale", ha="center")
        for index, group in enumerate(groups):
            top = TOP + ROW_HEIGHT * index + HEAD
            for panel in PANELS:
                _add_panel(plot, panel, top, group, record.cases)
        return plot.render()


def _source(record: ProbeRecord) -> str:
    return (
        f"machine {record.machine_hash[:12]}, tilewright {record.versions.tilewright}, "
        f"engine {record.versions.engine}; solid: simulated, dashed: bound (no queues, no refresh)"
    )


def _add_panel(
    plot: Plot, panel: _Panel, top: float, group: Group, rows: Sequence[ProbeRow]
) -> None:
    axes = plot.axes(panel.left, top, PANEL_WIDTH, PANEL_HEIGHT)
    axes.set_title(panel.title)
    axes.set_xlabel("bytes per issuer", loc="right", labelpad=6)
    sizes = [row.bytes for row in rows]
    set_log_scale(axes, "x", sizes, lambda size: format_bytes(round(size)), base=4)
    values = [value for row in rows for value in (panel.found(row), panel.bound(row))]
    set_log_scale(axes, "y", values, panel.label)
    entries = []
    for index, (case, found) in enumerate(group):
        extra = BAND * (len(group) - 1 - index) / len(group)
        entries.append((_add_case(plot, axes, panel, index, found, extra), case))
    if panel is PANELS[-1]:
        bound = legend_mark(axes, "--", COLOURS["pale"], linewidth=1), "bound of each"
        plot.legend(LEGEND_AT, top, [*entries, bound], width=LEGEND_WIDTH)


def _add_case(
    plot: Plot, axes: "Axes", panel: _Panel, index: int, rows: Sequence[ProbeRow], extra: float
) -> "Artist":
    """Add a line, wider by ``extra`` pixels, and its bound; return what a legend shows of it."""
    colour, mark = COLOURS[series_role(index)], series_mark(index)
    sizes, found = [row.bytes for row in rows], [panel.found(row) for row in rows]
    looks = {"linewidth": 1.8 + extra, "markersize": 7 + extra}
    shape = "_" if len(rows) == 1 else "--"
    axes.plot(
        sizes,
        [panel.bound(row) for row in rows],
        shape,
        color=colour,
        linewidth=1,
        markersize=STUB,
        zorder=1,
    )
    axes.plot(sizes, found, color=colour, linewidth=1.8 + extra)
    for row, value in zip(rows, found, strict=True):
        tip = f"{row.case}, {format_bytes(row.bytes)}: {panel.tip(row)}"
        plot.mark(axes, row.bytes, value, mark, colour, tip, **looks)
    return legend_mark(axes, f"{mark}-", colour, **looks)
