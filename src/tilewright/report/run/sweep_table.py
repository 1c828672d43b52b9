"""The points of a sweep for people: one line each, with the greatest parts of its time."""

from rich.text import Text

from tilewright.records.run.sweep import RunSweepRecord, SweepPoint
from tilewright.report.phase_words import ends_text, width_text
from tilewright.report.run.format import PART_WORDS
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
        view.append(f"{bound:>12}{ratio:>7}  {_values(point):<6}  {_parts(point)}\n")
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


def _parts(point: SweepPoint) -> str:
    parts = sorted(point.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    texts = [
        f"{PART_WORDS[name]} {share_text(part_ps / point.latency_ps)}"
        for name, part_ps in parts[:NUM_PARTS]
        if part_ps
    ]
    return ", ".join(texts)
