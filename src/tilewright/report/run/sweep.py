"""The points of a sweep, as lines of text and as a picture."""

from rich.text import Text

from tilewright.records.run.record import RunSweepRecord, SweepPoint
from tilewright.report.format import PART_COLOURS, PART_WORDS, ends_text, width_text
from tilewright.report.plot import legend_mark, open_plot
from tilewright.report.style import COLOURS
from tilewright.report.svg import shorten
from tilewright.units import format_ps, share_text

NUM_PARTS = 2


def point_text(point: SweepPoint) -> str:
    """The parameters of a point.

    >>> from tilewright.records import RunParts
    >>> point_text(SweepPoint(
    ...     parameters={"m": 128, "staging": "ref/ref"}, ok=True, latency_ps=0, bound_ps=None,
    ...     ratio=None, breakdown_ps=RunParts(), bottleneck="", values_ok=None))
    'm=128 staging=ref/ref'
    """
    return " ".join(f"{name}={value}" for name, value in point.parameters.items())


def sweep_view(record: RunSweepRecord) -> Text:
    view = Text()
    view.append(record.program, style="bold")
    view.append(f" on {record.machine}, {len(record.points)} points\n\n")
    width = max((len(point_text(point)) for point in record.points), default=0)
    header = (
        f"  {'point':<{width}}{'latency':>12}{'':>7}{'over phases':>26}{'bound':>12}{'ratio':>7}"
    )
    header += "  values  most of the time"
    view.append(f"{header}\n", style="dim")
    for point in record.points:
        bound = "-" if point.bound_ps is None else format_ps(point.bound_ps)
        ratio = "-" if point.ratio is None else f"{point.ratio:.2f}"
        view.append(f"  {point_text(point):<{width}}{_latency(point)}")
        view.append(f"{bound:>12}{ratio:>7}  {_values(point):<6}  {_greatest_parts(point)}\n")
    for point in record.points:
        if point.fitted is not None:
            view.append(f"{point_text(point)}: {point.fitted}\n")
    if record.status == "interrupted":
        view.append("INTERRUPTED: the points above had completed by then", style="bold red")
    view.rstrip()
    return view


def _latency(point: SweepPoint) -> str:
    mean = format_ps(point.figure_ps)
    return f"{mean:>12}{width_text(point.phases):>7}{ends_text(point.phases):>26}"


def _values(point: SweepPoint) -> str:
    if point.values_ok is None:
        return "-"
    return "ok" if point.values_ok else "WRONG"


def _greatest_parts(point: SweepPoint) -> str:
    parts = sorted(point.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    texts = [
        f"{PART_WORDS[name]} {share_text(part_ps / point.latency_ps)}"
        for name, part_ps in parts[:NUM_PARTS]
        if part_ps
    ]
    return ", ".join(texts)


WIDTH, MARGIN, TOP, ROW, TEXT_SIZE = 1120, 16, 100, 30, 13
LABEL_WIDTH, PARTS_AT, PARTS_WIDTH = 240, 268, 440
TIMES_AT, TIMES_WIDTH = 740, 190  # the figures stand behind their bars
LEGEND_COLUMNS, LEGEND_ROW, LEGEND_WIDTH = 3, 24, 300
BOUND, REST = "#16a34a", COLOURS["line"]


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
