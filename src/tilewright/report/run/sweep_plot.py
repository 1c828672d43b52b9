"""The points of a sweep as a picture: where the time of each went, how long it is, its bound."""

from tilewright.records.run.sweep import RunSweepRecord, SweepPoint
from tilewright.report.plot import legend_mark, open_plot
from tilewright.report.run.format import PART_WORDS
from tilewright.report.run.sweep_table import point_text
from tilewright.report.style import COLOURS
from tilewright.report.svg import shorten
from tilewright.units import format_ps, share_text

WIDTH, MARGIN, TOP, ROW, TEXT_SIZE = 1120, 16, 100, 30, 13
LABEL_WIDTH, PARTS_AT, PARTS_WIDTH = 240, 268, 440
TIMES_AT, TIMES_WIDTH = 740, 190  # the figures stand behind their bars
LEGEND_COLUMNS, LEGEND_ROW, LEGEND_WIDTH = 3, 24, 300
BOUND, REST = "#16a34a", COLOURS["line"]

PART_COLOURS = {
    "dispatch": "#94a3b8",
    "issue": "#64748b",
    "translation": "#a16207",
    "memory_read": "#2563eb",
    "memory_write": "#0891b2",
    "refresh": "#7c3aed",
    "link_queueing": "#dc2626",
    "tcm_port": "#65a30d",
    "gemm": "#16a34a",
    "vector": "#ca8a04",
    "message": "#db2777",
    "message_wait": "#f472b6",
    "execution": "#334155",
    "completion": "#cbd5e1",
    "host_transfer": "#ea580c",
    "other": "#0f172a",
}


def draw_sweep(record: RunSweepRecord) -> str:
    """Return the text of an SVG file; equal records give equal bytes."""
    points = record.points
    used = [name for name in PART_COLOURS if any(p.breakdown_ps.by_name()[name] for p in points)]
    bottom = TOP + ROW * len(points)
    height = bottom + LEGEND_ROW * -(-len(used) // LEGEND_COLUMNS) + 2 * MARGIN
    longest_ps = max((point.figure_ps for point in points), default=0) or 1
    with open_plot(WIDTH, height, f"sweep of {record.program} on {record.machine}") as plot:
        title = f"{record.program} on {record.machine}"
        plot.text(MARGIN, 26, title, fontsize=18, fontweight="bold")
        fixed = " ".join(f"{name}={value}" for name, value in record.parameters.items())
        plot.text(MARGIN, 52, shorten(fixed, WIDTH - 2 * MARGIN, size=TEXT_SIZE), role="pale")
        plot.text(PARTS_AT, 84, "where the time went, as shares", fontweight="bold")
        plot.text(TIMES_AT, 84, "latency, in green its bound", fontweight="bold")
        parts = plot.rows(PARTS_AT, TOP, PARTS_WIDTH, ROW * len(points), len(points))
        times = plot.rows(TIMES_AT, TOP, TIMES_WIDTH, ROW * len(points), len(points))
        parts.set_xlim(0, 1)
        times.set_xlim(0, longest_ps)
        for row, point in enumerate(points):
            middle = TOP + ROW * (row + 0.5)
            plot.text(MARGIN, middle, shorten(point_text(point), LABEL_WIDTH, size=TEXT_SIZE))
            plot.bar(parts, row, _parts(point))
            plot.bar(times, row, _times(point))
            end = TIMES_AT + TIMES_WIDTH * point.figure_ps / longest_ps
            plot.text(end + 8, middle, _figures(point))
        entries = [
            (legend_mark(parts, "s", PART_COLOURS[name], markersize=12), PART_WORDS[name])
            for name in used
        ]
        if entries:
            plot.legend(
                MARGIN, bottom + MARGIN, entries, width=LEGEND_WIDTH, columns=LEGEND_COLUMNS
            )
        return plot.render()


def _bound_share(point: SweepPoint) -> float | None:
    return None if point.ratio is None else min(1.0, 1 / point.ratio)


def _parts(point: SweepPoint) -> list[tuple[float, str, str]]:
    return [
        (
            part_ps / point.latency_ps,
            PART_COLOURS[name],
            f"{PART_WORDS[name]}: {format_ps(part_ps)}",
        )
        for name, part_ps in point.breakdown_ps.by_name().items()
        if part_ps
    ]


def _times(point: SweepPoint) -> list[tuple[float, str, str]]:
    latency_ps, share = point.figure_ps, _bound_share(point) or 0.0
    rest = ((1 - share) * latency_ps, REST, format_ps(latency_ps))
    if not share:
        return [rest]
    return [(share * latency_ps, BOUND, f"bound: {share_text(share)}"), rest]


def _figures(point: SweepPoint) -> str:
    text, share = format_ps(point.figure_ps), _bound_share(point)
    return text if share is None else f"{text} ({share_text(share)})"
