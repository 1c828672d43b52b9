"""The points of a sweep as a picture: where the time of each went, and how near its bound it is."""

from tilewright.records.run_sweep import RunSweepRecord, SweepPoint
from tilewright.report.phase_words import figure_ps
from tilewright.report.run.format import PART_WORDS, share_text
from tilewright.report.run.sweep_table import point_text
from tilewright.report.svg import INK, Svg, shorten
from tilewright.units import format_ps

__all__ = ("PART_COLOURS", "draw_sweep")

WIDTH, MARGIN, HEAD, ROW, BAR = 1080, 16, 76, 26, 16
LABEL_WIDTH, PARTS_AT, PARTS_WIDTH = 240, 268, 520
BOUND_AT, BOUND_WIDTH = 820, 120
LEGEND_COLUMNS, LEGEND_ROW = 4, 20
PALE, FRAME = "#475569", "#cbd5e1"

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
    """The text of an SVG file; equal records give equal bytes."""
    used = [
        name
        for name in PART_COLOURS
        if any(point.breakdown_ps.by_name()[name] for point in record.points)
    ]
    legend_rows = -(-len(used) // LEGEND_COLUMNS)
    height = HEAD + ROW * len(record.points) + LEGEND_ROW * legend_rows + 2 * MARGIN
    svg = Svg(WIDTH, height, f"sweep of {record.program} on {record.machine}")
    svg.rect(0, 0, WIDTH, height, fill="#ffffff")
    _add_head(svg, record)
    for place, point in enumerate(record.points):
        _add_point(svg, HEAD + ROW * place, point)
    top = HEAD + ROW * len(record.points) + MARGIN
    for place, name in enumerate(used):
        x = MARGIN + place % LEGEND_COLUMNS * (WIDTH - 2 * MARGIN) / LEGEND_COLUMNS
        y = top + place // LEGEND_COLUMNS * LEGEND_ROW
        svg.rect(x, y, 12, 12, fill=PART_COLOURS[name])
        svg.text(x + 18, y + 6, PART_WORDS[name], size=12, anchor="start")
    return svg.render()


def _add_head(svg: Svg, record: RunSweepRecord) -> None:
    title = f"{record.program} on {record.machine}"
    svg.text(MARGIN, 22, title, size=17, anchor="start", bold=True)
    fixed = " ".join(f"{name}={value}" for name, value in record.parameters.items())
    shown = shorten(fixed, WIDTH - 2 * MARGIN, size=11)
    svg.text(MARGIN, 42, shown, size=11, anchor="start", fill=PALE)
    svg.text(PARTS_AT, 62, "where the time went", size=12, anchor="start", fill=PALE)
    svg.text(BOUND_AT, 62, "bound / latency", size=12, anchor="start", fill=PALE)


def _add_point(svg: Svg, top: float, point: SweepPoint) -> None:
    middle = top + BAR / 2
    label = shorten(point_text(point), LABEL_WIDTH, size=12)
    svg.text(MARGIN, middle, label, size=12, anchor="start", fill=INK)
    left = float(PARTS_AT)
    for name, part_ps in point.breakdown_ps.by_name().items():
        if part_ps:
            width = PARTS_WIDTH * part_ps / point.latency_ps
            tip = f"{PART_WORDS[name]}: {format_ps(part_ps)}"
            svg.rect(left, top, width, BAR, fill=PART_COLOURS[name], tip=tip)
            left += width
    svg.rect(BOUND_AT, top, BOUND_WIDTH, BAR, fill="none", stroke=FRAME)
    text = format_ps(figure_ps(point.latency_ps, point.phases))
    if point.ratio is not None:
        share = min(1.0, 1 / point.ratio)
        svg.rect(BOUND_AT, top, BOUND_WIDTH * share, BAR, fill="#16a34a", tip=share_text(share))
        text = f"{share_text(share)} of {text}"
    svg.text(BOUND_AT + BOUND_WIDTH + 8, middle, text, size=12, anchor="start", fill=INK)
