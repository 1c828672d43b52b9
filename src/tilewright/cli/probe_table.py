"""The rows of a probe for people: a block of lines per case, then totals and checks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.text import Text

from tilewright.programs.probe.case import PROBE_CASES
from tilewright.programs.probe.check import CHECKS
from tilewright.records import Breakdown, ProbeRecord, ProbeRow
from tilewright.report.phase_words import ends_text
from tilewright.units import count_text, format_bytes, format_ps

BAR_LETTERS = 12
HEADER = (
    f"{'size':>9}{'latency':>11}{'+-%':>5}{'bound':>11}"
    f"{'ratio':>6}{'GB/s':>9}{'limit':>9}{'used':>5}  where"
)
MEANING = """\
latency: mean over refresh phases, and its half-width in per cent (?: too few
phases to know it), and below it the smallest and the largest;
bound: least time, without queues or refresh; limit: GB/s of the memory in the
long run; used: share of the time that the busiest link or memory was busy;
where: the time went, for the issuer that ends last, in twelfths, at phase 0:
"""

_STYLES = {
    "overhead": "cyan",
    "wire": "blue",
    "serialisation": "green",
    "queueing": "red",
    "memory": "yellow",
    "refresh": "magenta",
}


def probe_view(record: ProbeRecord) -> Text:
    """Everything that there is to read, at most 80 columns wide but for names of links."""
    view = Text()
    for case, rows in groupby(record.cases, key=lambda row: row.case):
        _add_case(view, case, list(rows))
    view.append(MEANING)
    for place, (part, style) in enumerate(_STYLES.items()):
        view.append(", " if place else "")
        view.append(part[0], style=f"bold {style}")
        view.append(part[1:])
    view.append("\n\n")
    view.append("\n".join(_endings(record)))
    return view


def bar_of(parts: Breakdown, letters: int = BAR_LETTERS) -> str:
    """The first letter of each part, as often as is its share; greatest remainders round up.

    >>> bar_of(Breakdown(overhead=1, wire=0, serialisation=2, queueing=0, memory=5, refresh=0), 8)
    'ossmmmmm'
    """
    times = dict(parts)
    total_ps = sum(times.values())
    if total_ps == 0:
        return ""
    counts = {name: letters * part_ps // total_ps for name, part_ps in times.items()}
    rests = sorted(times, key=lambda name: -(letters * times[name] % total_ps))
    for name in rests[: letters - sum(counts.values())]:
        counts[name] += 1
    return "".join(name[0] * count for name, count in counts.items())


def _add_case(view: Text, case: str, rows: Sequence[ProbeRow]) -> None:
    view.append(case, style="bold")
    view.append(f"  {_description(case)}{_issuers(rows)}\n")
    view.append(HEADER + "\n", style="dim")
    for row in rows:
        view.append(
            f"{format_bytes(row.bytes):>9}"
            f"{format_ps(row.figure_ps):>11}{_width(row):>5}"
            f"{format_ps(row.bound_ps):>11}{row.ratio:>6.2f}{row.bandwidth_gbs:>9,.1f}"
            f"{row.refresh_limited_gbs:>9,.1f}{row.utilisation:>5.0%}  "
        )
        for letter in bar_of(row.breakdown_ps):
            view.append(letter, style=_style_of(letter))
        view.append("\n")
        if row.phases is not None and ends_text(row.phases):
            view.append(f"{'':9} {ends_text(row.phases)}, {row.phases.count} phases\n", style="dim")
    for line in _busiest(rows):
        view.append(f"    {line}\n")
    view.append("\n")


def _width(row: ProbeRow) -> str:
    fraction = None if row.phases is None else row.phases.relative_half_width
    if row.phases is None or fraction is None:
        return ""
    return "?" if row.phases.may_miss_refresh else f"{100 * fraction:.1f}"


def _description(case: str) -> str:
    return PROBE_CASES[case].description if case in PROBE_CASES else ""


def _issuers(rows: Sequence[ProbeRow]) -> str:
    most = max(row.issuers for row in rows)
    return f" ({most} issuers)" if most > 1 else ""


def _style_of(letter: str) -> str:
    return next(style for part, style in _STYLES.items() if part[0] == letter)


def _busiest(rows: Iterable[ProbeRow]) -> Iterator[str]:
    """The bottlenecks, each with the size from which on it is one."""
    runs = [(name, list(found)) for name, found in groupby(rows, key=lambda row: row.bottleneck)]
    for name, found in runs:
        span = f" from {format_bytes(found[0].bytes)}" if len(runs) > 1 else ""
        yield f"busiest{span}: {name}"


def _endings(record: ProbeRecord) -> Iterator[str]:
    yield from (f"skipped {case.case}: {case.reason}" for case in record.skipped)
    rows = count_text(len(record.cases), "row")
    cases = count_text(len({row.case for row in record.cases}), "case")
    yield (
        f"{rows} of {cases} on {record.machine} "
        f"(hash {record.machine_hash[:12]}), engine {record.versions.engine}"
    )
    if not record.failures:
        yield from (f"holds: {check}" for check in CHECKS)
    yield from (f"CHECK FAILED: {failure}" for failure in record.failures)
