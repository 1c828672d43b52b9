"""Collectives as a picture: the latency of each beside its bound and what it takes on paper."""

from collections.abc import Sequence
from itertools import groupby

from tilewright.records.collectives_bench import CollectiveRow, CollectivesBenchRecord
from tilewright.report.svg import Svg, shorten
from tilewright.units import format_bytes, format_ps

__all__ = ("draw_collectives",)

WIDTH, MARGIN, HEAD, ROW, BAR = 1080, 16, 64, 22, 12
LABEL_WIDTH, BARS_AT, BARS_WIDTH, FIGURES_AT = 330, 360, 460, 836
BOUND, LATENCY, PAPER, PALE = "#16a34a", "#2563eb", "#dc2626", "#475569"


def draw_collectives(record: CollectivesBenchRecord) -> str:
    """The text of an SVG file; equal records give equal bytes.

    A bar is the latency, its first part the bound; a mark is the time on paper.
    """
    series = [(name, list(rows)) for name, rows in groupby(record.rows, lambda row: row.series)]
    height = HEAD + ROW * (len(record.rows) + len(series)) + MARGIN
    svg = Svg(WIDTH, height, "collectives")
    svg.rect(0, 0, WIDTH, height, fill="#ffffff")
    svg.text(MARGIN, 22, "All-reduce, simulated", size=17, anchor="start", bold=True)
    for place, (colour, word) in enumerate(
        ((BOUND, "lower bound"), (LATENCY, "latency"), (PAPER, "alpha-beta"))
    ):
        svg.rect(BARS_AT + 130 * place, 38, 12, 12, fill=colour)
        svg.text(BARS_AT + 130 * place + 18, 44, word, size=12, anchor="start", fill=PALE)
    top = float(HEAD)
    for name, rows in series:
        svg.text(MARGIN, top + ROW / 2, name, size=13, anchor="start", bold=True)
        top += ROW
        for row in rows:
            _add_row(svg, top, row, rows)
            top += ROW
    return svg.render()


def _add_row(svg: Svg, top: float, row: CollectiveRow, rows: Sequence[CollectiveRow]) -> None:
    """Rows of one size have one scale, so that they can be compared."""
    alike = [each for each in rows if each.bytes == row.bytes]
    longest_ps = max(max(each.mean_ps, each.alpha_beta_ps) for each in alike)
    scale = BARS_WIDTH / longest_ps
    middle = top + BAR / 2
    label = f"{row.topology}, {row.algorithm}, {row.buffer}, {format_bytes(row.bytes)}"
    svg.text(MARGIN, middle, shorten(label, LABEL_WIDTH, size=12), size=12, anchor="start")
    tip = f"{format_ps(round(row.mean_ps))}, busiest: {row.bottleneck}"
    svg.rect(BARS_AT, top, row.mean_ps * scale, BAR, fill=LATENCY, tip=tip)
    bound = f"lower bound {format_ps(row.bound_ps)}"
    svg.rect(BARS_AT, top, row.bound_ps * scale, BAR, fill=BOUND, tip=bound)
    paper = f"alpha-beta {format_ps(row.alpha_beta_ps)}"
    svg.rect(BARS_AT + row.alpha_beta_ps * scale - 1, top - 2, 2, BAR + 4, fill=PAPER, tip=paper)
    figures = f"{format_ps(round(row.mean_ps))}  {row.busbw_gbs:.1f} GB/s"
    svg.text(FIGURES_AT, middle, figures, size=12, anchor="start", fill=PALE)
