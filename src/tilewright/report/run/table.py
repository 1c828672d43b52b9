"""The record of a run for people: what it took, what it must take, and where the time went."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from tilewright.records import LaunchRow, RunRecord
from tilewright.records.run.part import SanitizerFinding
from tilewright.report.format import PART_WORDS, latency_text, width_text
from tilewright.units import count_text, format_bytes, format_ps, share_text

BAR_LETTERS = 24
LEAST_SHARE = 0.005  # of a part that gets a line of its own
NUM_BLOCKS = 4
NUM_LINES = 5


def run_view(record: RunRecord) -> Text:
    """At most 80 columns wide, but for names of links and notes."""
    view = Text()
    view.append(f"{record.what.program}", style="bold")
    view.append(f" on {record.machine.name}{_parameters(record)}\n\n")
    for name, text, style in _headlines(record):
        view.append(f"  {name:<12}", style="dim")
        view.append(f"{text}\n", style=style)
    view.append("\n")
    _add_parts(view, record)
    add_block(view, "by line of the kernels", _kernel_lines(record))
    if len(record.launches) > 1:
        _add_launches(view, record.launches)
    used = sorted(record.utilisation.items(), key=lambda item: (-item[1], item[0]))[:NUM_BLOCKS]
    add_block(view, "most used", (f"{share_text(share):>9}  {name}" for name, share in used))
    add_block(view, "wrong accesses", _finding_lines(record.findings or ()))
    view.append("\n".join(_endings(record)))
    return view


def _parameters(record: RunRecord) -> str:
    texts = [f"{name}={value}" for name, value in record.parameters.items()]
    return f" ({', '.join(texts)})" if texts else ""


def _headlines(record: RunRecord) -> Iterator[tuple[str, str, str]]:
    if record.status == "interrupted":
        yield "INTERRUPTED", "the figures are those of what had completed by then", "bold red"
    yield "latency", latency_text(record.latency_ps, record.phases), "bold"
    if record.bound_ps is not None:
        yield "lower bound", _bound(record, record.bound_ps), ""
    if record.ratio is not None:
        yield "ratio", f"{record.ratio:.2f}", ""
    yield "values", *_values(record)
    yield "bottleneck", record.bottleneck, ""
    if record.findings is not None:
        yield "sanitizer", *_findings(record.findings)
    for failure in record.failures:
        yield "CHECK FAILED", failure, "bold red"


def _bound(record: RunRecord, bound_ps: int) -> str:
    """Say whose the bound is, and what of it is latency."""
    text = format_ps(bound_ps) + (f", of {record.bound_resource}" if record.bound_resource else "")
    latency_ps = record.bound_latency_ps
    if not latency_ps or latency_ps == bound_ps:
        return text
    return f"{text}: {format_ps(latency_ps)} of latency, {format_ps(bound_ps - latency_ps)} of work"


def _values(record: RunRecord) -> tuple[str, str]:
    if record.values_ok is None:
        return "not checked", ""
    error = "no finite number" if record.max_error is None else f"{record.max_error:.1e}"
    text = f"error {error} of a row's norm, tolerance {record.tolerance:.0e}"
    return (f"ok: {text}", "green") if record.values_ok else (f"WRONG: {text}", "bold red")


def _findings(findings: Sequence[SanitizerFinding]) -> tuple[str, str]:
    if not findings:
        return "no wrong access", "green"
    return f"{count_text(len(findings), 'mistake')}, told below", "bold red"


def add_block(view: Text, title: str, lines: Iterable[str]) -> None:
    """Add indented lines under a title, and an empty one behind them; nothing without lines."""
    text = "".join(f"  {line}\n" for line in lines)
    if text:
        view.append(f"{title}\n", style="bold")
        view.append(f"{text}\n")


def _finding_lines(findings: Sequence[SanitizerFinding]) -> Iterator[str]:
    for number, found in enumerate(findings, 1):
        times = f", {found.count} times" if found.count > 1 else ""
        place = f"{found.num_bytes} bytes from {found.element} of {found.tensor}{times}"
        yield f"{number}. {found.kind}: {place}"
        for side in found.sides:
            time = "before it is served" if side.at_ps is None else f"at {format_ps(side.at_ps)}"
            line = f", {side.line}" if side.line else ""
            yield f"   {side.what} by {side.actor}{line}, {time}"
        yield f"   {found.detail}"


def _add_parts(view: Text, record: RunRecord) -> None:
    if not record.latency_ps:
        return
    view.append(f"where the time went, along the critical path{_phase(record)}\n", style="bold")
    parts = sorted(record.breakdown_ps.by_name().items(), key=lambda part: -part[1])
    shown = [(name, ps) for name, ps in parts if ps >= LEAST_SHARE * record.latency_ps]
    rest_ps = record.latency_ps - sum(ps for _, ps in shown)
    lines = [(PART_WORDS[name], ps) for name, ps in shown]
    for words, part_ps in [*lines, *([("all the rest", rest_ps)] if rest_ps else [])]:
        share = part_ps / record.latency_ps
        bar = "#" * round(BAR_LETTERS * share)
        view.append(f"  {words:<36}{format_ps(part_ps):>11} {share_text(share):>9}  ")
        view.append(f"{bar}\n", style="cyan")
    view.append("\n")


def _phase(record: RunRecord) -> str:
    """Name the phase that the breakdown is of, where there are others."""
    if record.phases is None or record.phases.count == 1:
        return ""
    return f" at refresh phase 0, {format_ps(record.latency_ps)}"


def _kernel_lines(record: RunRecord) -> Iterator[str]:
    ordered = sorted(record.lines_ps.items(), key=lambda line: (-line[1], line[0]))
    for name, time_ps in ordered[:NUM_LINES]:
        share = share_text(time_ps / record.latency_ps)
        yield f"{name:<36}{format_ps(time_ps):>11} {share:>9}"


def _add_launches(view: Text, launches: Sequence[LaunchRow]) -> None:
    view.append("launches\n", style="bold")
    header = f"  {'name':<22}{'PEs':>5}{'latency':>12}{'dispatch':>11}{'execution':>12}{'skew':>11}"
    view.append(f"{header}\n", style="dim")
    for row in launches:
        mark = " " if row.is_measured else "-"
        view.append(
            f"{mark} {row.name[:21]:<22}{row.num_pes:>5}{format_ps(row.latency_ps):>12}"
            f"{format_ps(row.dispatch_ps):>11}{format_ps(row.execution_ps):>12}"
            f"{format_ps(row.skew_ps):>11}\n"
        )
    if not all(row.is_measured for row in launches):
        view.append("  -: outside of what is measured\n", style="dim")
    view.append("\n")


def _phase_notes(record: RunRecord) -> Iterator[str]:
    phases = record.phases
    if phases is None or phases.count == 1:
        return
    if phases.may_miss_refresh:
        yield (
            f"refresh phases: {phases.count} of them may all miss a refresh, or all meet it alike; "
            "without --phases there are enough"
        )
    elif phases.reason == "limit":
        yield (
            f"refresh phases: the mean is known to {width_text(phases)[:-1]} % only, "
            f"after {phases.count} of them"
        )


def _endings(record: RunRecord) -> Iterator[str]:
    yield from record.notes
    yield from _phase_notes(record)
    counters = record.counters
    moved = f"{format_bytes(counters.get('loaded_bytes', 0))} loaded"
    moved += f", {format_bytes(counters.get('stored_bytes', 0))} stored"
    programs = sum(row.num_programs for row in record.launches if row.is_measured)
    yield (
        f"{count_text(programs, 'program')}, "
        f"{count_text(counters.get('commands', 0), 'command')}, {moved}; "
        f"engine {record.versions.engine}, seed {record.seed}, machine {record.machine_hash[:12]}"
    )
