"""``tilewright probe``: what moving bytes costs on a machine, beside what it must cost."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.option import SetOption, machine_option
from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.progress import progress_line
from tilewright.cli.startup import EngineOption, PhasesOption, announced_engine, machine_of
from tilewright.errors import UnitError
from tilewright.machine.check import warnings_of
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.programs.probe.case import PROBE_CASES, SIZES
from tilewright.programs.probe.check import CHECKS
from tilewright.programs.probe.run import run_probe
from tilewright.records import Breakdown, ProbeRecord, ProbeRow
from tilewright.report.format import ends_text, width_text
from tilewright.report.plot import check_plot_path
from tilewright.report.probe_plot import draw_probe
from tilewright.report.svg import write_svg
from tilewright.units import count_text, format_bytes, format_ps, parse_bytes

MAX_DIGITS = 18
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
_STYLES_BY_LETTER = {part[0]: style for part, style in _STYLES.items()}

CaseOption = Annotated[
    list[str] | None,
    typer.Option("--case", metavar="NAME", help="Run this case; may be repeated."),
]
BytesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bytes", metavar="SIZE", help="Bytes per issuer, 4096 or 64KiB; may be repeated."
    ),
]
PlotOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.svg", help="Draw bandwidth and latency over size into this file."),
]


def probe(
    case: CaseOption = None,
    bytes_: BytesOption = None,
    machine: Annotated[
        str, machine_option("A machine file, or the name of a preset.")
    ] = DEFAULT_PRESET,
    set_: SetOption = None,
    engine: EngineOption = None,
    phases: PhasesOption = None,
    plot: PlotOption = None,
) -> Outcome:
    """Measure a machine's latency and bandwidth beside lower bounds.

    A case says who moves bytes where. All its issuers start together and move
    --bytes each, through their DMA or over PCIe. A row tells the time until the
    last issuer is done, the least time that the machine's figures allow, where
    the time went, and which link or memory was used most. Rows shorter than 20
    refresh intervals are repeated with refresh at other phases (--phases), and
    the time is their mean. Sizes, unless you say
    others: {sizes}, and 16 MiB for local_all.

    Cases:

    \b
      {cases}

    Examples:

    \b
      tilewright probe --case pe_local --case pe_far_cube --bytes 4KiB
      tilewright probe --machine ahbm-small --plot probe.svg
      tilewright probe --case hot_8 --set cube.noc.bytes_per_us="512 GB/s" --json

    Without --case, all cases run that the machine has the parts for; on ahbm
    that takes one to two minutes with the native engine, and far longer without.

    Exit status: 0 every check holds, 1 a check failed and is named, 2 wrong input.
    """
    sizes = [parse_size(text) for text in bytes_ or ()]
    if plot is not None:
        check_plot_path(plot)
    found = machine_of(machine, set_ or ())
    for warning in warnings_of(found):
        note(f"warning: {warning}")
    kind = announced_engine(engine)
    with progress_line(is_wanted=True, what="probe") as line:
        record = run_probe(
            found, names=case or (), sizes=sizes, choice=kind, phases=phases, progress=line or note
        )
    if plot is not None:
        write_svg(plot, draw_probe(record))
    return Outcome(record, _view(record), passed=record.ok)


# a \b alone on its line: the parser keeps the lines of that paragraph as they are
probe.__doc__ = (probe.__doc__ or "").format(
    sizes=", ".join(map(format_bytes, SIZES)),
    cases="\n      ".join(f"{case.name:<16}  {case.description}" for case in PROBE_CASES.values()),
)


def parse_size(text: str) -> int:
    """A size of the command line: with a unit, or a bare number of bytes.

    >>> parse_size("4096"), parse_size("64KiB"), parse_size("1 MiB")
    (4096, 65536, 1048576)
    """
    word = text.strip()
    is_bare = word.isascii() and word.isdecimal()
    fix = "write it like 4096 or '64 KiB'"
    if is_bare and len(word) > MAX_DIGITS:
        raise UnitError("--bytes", repr(text[:80]), "a size that a memory can have", fix)
    try:
        num_bytes = int(word) if is_bare else parse_bytes(word, where="--bytes")
    except UnitError as error:
        expected = error.expected if any(map(str.isalpha, word)) else "a number of bytes"
        raise UnitError("--bytes", error.found, expected, fix) from error
    if num_bytes < 1:
        raise UnitError("--bytes", repr(text), "at least one byte", fix)
    return num_bytes


def _view(record: ProbeRecord) -> Text:
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
    description = PROBE_CASES[case].description if case in PROBE_CASES else ""
    most = max(row.issuers for row in rows)
    view.append(f"  {description}{f' ({most} issuers)' if most > 1 else ''}\n")
    view.append(HEADER + "\n", style="dim")
    for row in rows:
        view.append(
            f"{format_bytes(row.bytes):>9}"
            f"{format_ps(row.figure_ps):>11}{width_text(row.phases).strip('±%'):>5}"
            f"{format_ps(row.bound_ps):>11}{row.ratio:>6.2f}{row.bandwidth_gbs:>9,.1f}"
            f"{row.refresh_limited_gbs:>9,.1f}{row.utilisation:>5.0%}  "
        )
        for letter in bar_of(row.breakdown_ps):
            view.append(letter, style=_STYLES_BY_LETTER[letter])
        view.append("\n")
        if row.phases is not None and ends_text(row.phases):
            view.append(f"{'':9} {ends_text(row.phases)}, {row.phases.count} phases\n", style="dim")
    for line in _busiest(rows):
        view.append(f"    {line}\n")
    view.append("\n")


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
