"""Bandwidth and latency over size, as a probe found them: one line per case, its bound dashed.

Related cases share a row of two panels; all panels of a kind have the same axes, so that rows can
be compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.records import ProbeRecord, ProbeRow, check_target
from tilewright.report.phase_words import figure_ps
from tilewright.report.svg import INK, Svg
from tilewright.units import format_bytes, format_ps

__all__ = ("check_plot_path", "draw_probe")

WIDTH, TOP, MARGIN = 1080, 64, 16
PANEL_WIDTH, PANEL_HEIGHT, ROW_HEIGHT = 360, 220, 290
PANELS_AT = (70, 510)
LEGEND_AT = 894
GRID, FRAME, PALE = "#e2e8f0", "#94a3b8", "#475569"
COLOURS = ("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#64748b")
DASH = "5 4"
MARK = 6  # side of the square on a measured point
STUB = 16  # length of the bound of a case with one size
MOST_LABELS = 8


def check_plot_path(path: Path) -> None:
    """Refuse, before any work is done, a file that a plot cannot become."""
    if path.suffix.lower() != ".svg":
        found, fix = f"a plot called {path.name!r}", "the plot is an SVG; rename it"
        raise RecordError(str(path), found, "a name that ends in .svg", fix)
    check_target(path, "plot")


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic scale from a power of its base to another."""

    low: float
    high: float
    base: int

    def place(self, value: float) -> float:
        """From 0 at the low end to 1 at the high end."""
        return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))

    def ticks(self) -> Iterator[float]:
        steps = round((log10(self.high) - log10(self.low)) / log10(self.base))
        stride = ceil((steps + 1) / MOST_LABELS)
        for step in range(0, steps + 1, stride):
            yield self.low * self.base**step


@dataclass(frozen=True, slots=True)
class _Point:
    num_bytes: int
    found: float
    bound: float
    tip: str


@dataclass(frozen=True, slots=True)
class _Panel:
    """One kind of figure: what it shows and on which axes."""

    title: str
    left: float
    x_axis: _Axis
    y_axis: _Axis

    def x(self, num_bytes: float) -> float:
        return self.left + PANEL_WIDTH * self.x_axis.place(num_bytes)

    def y(self, top: float, value: float) -> float:
        return top + PANEL_HEIGHT * (1 - self.y_axis.place(value))


def draw_probe(record: ProbeRecord) -> str:
    """The text of an SVG file; equal records give equal bytes."""
    groups = _groups(record.cases)
    height = TOP + ROW_HEIGHT * max(1, len(groups)) + MARGIN
    svg = Svg(WIDTH, height, f"probe of {record.machine}")
    svg.rect(0, 0, WIDTH, height, fill="#ffffff")
    _add_head(svg, record)
    if not record.cases:
        svg.text(WIDTH / 2, TOP + PANEL_HEIGHT / 2, "no case ran", size=16, fill=PALE)
    for place, group in enumerate(groups):
        top = TOP + place * ROW_HEIGHT + 22
        for panel, points_of in zip(_panels(record.cases), (_rates, _times), strict=True):
            _add_frame(svg, panel, top)
            for (_, rows), colour in zip(group, COLOURS, strict=False):
                _add_line(svg, panel, top, points_of(rows), colour)
        _add_legend(svg, [case for case, _ in group], top)
    return svg.render()


Group = list[tuple[str, list[ProbeRow]]]


def _groups(rows: Sequence[ProbeRow]) -> list[Group]:
    """Cases whose names begin with one word together; cases alone with theirs share a group."""
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
    most = len(COLOURS)
    return [
        group[place : place + most] for group in together for place in range(0, len(group), most)
    ]


def _panels(rows: Sequence[ProbeRow]) -> tuple[_Panel, _Panel]:
    sizes = _axis([row.bytes for row in rows], base=4)
    rates = _axis([rate for row in rows for rate in (row.bandwidth_gbs, row.bound_gbs)], base=10)
    times = _axis(
        [time for row in rows for time in (figure_ps(row.latency_ps, row.phases), row.bound_ps)],
        base=10,
    )
    return (
        _Panel("bandwidth of all issuers, GB/s", PANELS_AT[0], sizes, rates),
        _Panel("latency", PANELS_AT[1], sizes, times),
    )


def _axis(values: Sequence[float], *, base: int) -> _Axis:
    low = floor(round(log10(min(values)) / log10(base), 9))
    high = ceil(round(log10(max(values)) / log10(base), 9))
    return _Axis(float(base) ** low, float(base) ** max(high, low + 1), base)


def _rates(rows: Sequence[ProbeRow]) -> list[_Point]:
    return [
        _Point(
            row.bytes,
            row.bandwidth_gbs,
            row.bound_gbs,
            f"{row.case}, {format_bytes(row.bytes)}: {row.bandwidth_gbs:,.1f} GB/s, "
            f"at most {row.bound_gbs:,.1f}",
        )
        for row in rows
    ]


def _times(rows: Sequence[ProbeRow]) -> list[_Point]:
    return [
        _Point(
            row.bytes,
            figure_ps(row.latency_ps, row.phases),
            row.bound_ps,
            f"{row.case}, {format_bytes(row.bytes)}: "
            f"{format_ps(figure_ps(row.latency_ps, row.phases))}, "
            f"at least {format_ps(row.bound_ps)}",
        )
        for row in rows
    ]


def _add_head(svg: Svg, record: ProbeRecord) -> None:
    title = f"Probe of {record.machine}"
    svg.text(MARGIN, 22, title, size=18, anchor="start", bold=True)
    source = (
        f"machine {record.machine_hash[:12]}, tilewright {record.versions.tilewright}, "
        f"engine {record.versions.engine}; solid: simulated, dashed: bound (no queues, no refresh)"
    )
    svg.text(MARGIN, 45, source, size=12, anchor="start", fill=PALE)


def _add_frame(svg: Svg, panel: _Panel, top: float) -> None:
    bottom, right = top + PANEL_HEIGHT, panel.left + PANEL_WIDTH
    svg.text(panel.left, top - 11, panel.title, size=12, anchor="start", bold=True)
    for size in panel.x_axis.ticks():
        x = panel.x(size)
        svg.line([(x, top), (x, bottom)], stroke=GRID, width=1)
        svg.text(x, bottom + 13, _size_label(size), size=10, fill=PALE)
    for value in panel.y_axis.ticks():
        y = panel.y(top, value)
        svg.line([(panel.left, y), (right, y)], stroke=GRID, width=1)
        label = _time_label(value) if panel.title == "latency" else f"{value:,g}"
        svg.text(panel.left - 6, y, label, size=10, anchor="end", fill=PALE)
    corners = [(panel.left, top), (panel.left, bottom), (right, bottom)]
    svg.line(corners, stroke=FRAME, width=1)
    svg.text(right, bottom + 29, "bytes per issuer", size=10, anchor="end", fill=PALE)


def _size_label(num_bytes: float) -> str:
    return format_bytes(round(num_bytes)) if num_bytes >= 1 else f"{num_bytes:g} B"


def _time_label(time_ps: float) -> str:
    """A power of ten with its unit.

    >>> _time_label(100_000.0), _time_label(1_000_000.0)
    ('100 ns', '1 us')
    """
    return format_ps(round(time_ps)) if time_ps >= 1 else f"{time_ps:g} ps"


def _add_line(svg: Svg, panel: _Panel, top: float, points: list[_Point], colour: str) -> None:
    bounds = [(panel.x(point.num_bytes), panel.y(top, point.bound)) for point in points]
    if len(bounds) == 1:
        ((x, y),) = bounds
        bounds = [(x - STUB / 2, y), (x + STUB / 2, y)]
    svg.line(bounds, stroke=colour, width=1, dash=DASH)
    places = [(panel.x(point.num_bytes), panel.y(top, point.found)) for point in points]
    svg.line(places, stroke=colour, width=1.8)
    for (x, y), point in zip(places, points, strict=True):
        svg.rect(x - MARK / 2, y - MARK / 2, MARK, MARK, fill=colour, radius=1, tip=point.tip)


def _add_legend(svg: Svg, cases: Sequence[str], top: float) -> None:
    for place, (case, colour) in enumerate(zip(cases, COLOURS, strict=False)):
        y = top + 8 + 20 * place
        svg.line([(LEGEND_AT, y), (LEGEND_AT + 24, y)], stroke=colour, width=1.8)
        svg.rect(LEGEND_AT + 12 - MARK / 2, y - MARK / 2, MARK, MARK, fill=colour, radius=1)
        svg.text(LEGEND_AT + 30, y, case, size=12, anchor="start", fill=INK)
    y = top + 8 + 20 * len(cases)
    svg.line([(LEGEND_AT, y), (LEGEND_AT + 24, y)], stroke=PALE, width=1, dash=DASH)
    svg.text(LEGEND_AT + 30, y, "bound of each", size=12, anchor="start", fill=PALE)
