"""Collectives as a picture: the latency of each beside its bound and what it takes on paper."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilewright.records.bench import CollectiveRow, CollectivesBenchRecord
from tilewright.report.plot import Plot, legend_mark, open_plot, set_log_scale
from tilewright.report.style import COLOURS
from tilewright.report.svg import shorten
from tilewright.units import format_bytes, format_ps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, MARGIN, TOP, ROW, BOTTOM, TEXT_SIZE = 1160, 16, 80, 26, 64, 13
LABEL_WIDTH, TIMES_AT, TIMES_WIDTH = 380, 410, 520
LATENCY_AT, RATE_AT = WIDTH - 116, WIDTH - MARGIN
BOUND, LATENCY, PAPER = "#16a34a", COLOURS["flow-1"], "#dc2626"
PAPER_MARK = {"markersize": 16.0, "markeredgewidth": 2.5}


def draw_collectives(record: CollectivesBenchRecord) -> str:
    """Return the text of an SVG file; equal records give equal bytes.

    A line goes from the bound to the latency, both on one logarithmic axis for all rows.
    """
    indices = [*_row_indices(record.rows)]
    num_rows = indices[-1] + 1 if indices else 1
    with open_plot(WIDTH, TOP + ROW * num_rows + BOTTOM, "collectives") as plot:
        plot.text(MARGIN, 26, "All-reduce, simulated", fontsize=18, fontweight="bold")
        axes = plot.axes(TIMES_AT, TOP, TIMES_WIDTH, ROW * num_rows)
        axes.set_ylim(num_rows - 0.5, -0.5)
        axes.set_yticks([])
        axes.set_xlabel("time, logarithmic", labelpad=8)
        times_ps = [
            time_ps
            for row in record.rows
            for time_ps in (row.bound_ps, row.mean_ps, row.alpha_beta_ps)
            if time_ps  # a bound of 0 says nothing
        ]
        set_log_scale(axes, "x", times_ps or [1.0], lambda time_ps: format_ps(round(time_ps)))
        entries = [
            (legend_mark(axes, "o", BOUND), "lower bound"),
            (legend_mark(axes, "D", LATENCY), "latency"),
            (legend_mark(axes, "|", PAPER, **PAPER_MARK), "alpha-beta, on paper"),
        ]
        plot.legend(TIMES_AT, 44, entries, width=200, columns=3)
        for index, row in zip(indices, record.rows, strict=True):
            if index - 1 not in indices:
                plot.text(MARGIN, _middle(index - 1), row.series, fontsize=14, fontweight="bold")
            _add_row(plot, axes, index, row)
        return plot.render()


def _row_indices(rows: Sequence[CollectiveRow]) -> Iterator[int]:
    """Yield the line of each row; the line above a series has its name."""
    index, series = -1, ""
    for row in rows:
        index += 1 if row.series == series else 2
        series = row.series
        yield index


def _middle(index: int) -> float:
    return TOP + ROW * (index + 0.5)


def _add_row(plot: Plot, axes: "Axes", index: int, row: CollectiveRow) -> None:
    middle = _middle(index)
    label = f"{row.topology}, {row.algorithm}, {row.buffer}, {format_bytes(row.bytes)}"
    plot.text(MARGIN, middle, shorten(label, LABEL_WIDTH, size=TEXT_SIZE))
    latency = format_ps(row.figure_ps)
    plot.text(LATENCY_AT, middle, latency, role="pale", ha="right")
    plot.text(RATE_AT, middle, f"{row.busbw_gbs:.1f} GB/s", role="pale", ha="right")
    if row.bound_ps:
        axes.plot([row.bound_ps, row.mean_ps], [index, index], color=LATENCY)
        tip = f"lower bound {format_ps(row.bound_ps)}"
        plot.mark(axes, row.bound_ps, index, "o", BOUND, tip)
    plot.mark(axes, row.mean_ps, index, "D", LATENCY, f"{latency}, busiest: {row.bottleneck}")
    paper = f"alpha-beta {format_ps(row.alpha_beta_ps)}"
    plot.mark(axes, row.alpha_beta_ps, index, "|", PAPER, paper, **PAPER_MARK)
