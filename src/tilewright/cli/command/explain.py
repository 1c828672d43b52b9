"""``tilewright explain`` and ``compare``: what records of runs tell."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.progress import progress_line
from tilewright.records import RunRecord, read_record, told_if_contradictory
from tilewright.records.explain import CompareRecord, FieldChange, FigureChange
from tilewright.report.compare import compare_runs
from tilewright.report.explain.run import explain_run
from tilewright.report.explain.table import explain_view
from tilewright.report.format import PART_WORDS
from tilewright.report.run.table import add_block
from tilewright.studies.explain_measure import measure_advice
from tilewright.units import format_ps

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN.json", help="A record of run --record or run --json.")
]
MeasureOption = Annotated[
    bool, typer.Option("--measure", help="Run the advised changes and report what each saves.")
]
SecondsOption = Annotated[
    float,
    typer.Option(
        metavar="S", min=0.0, help="Wall time for --measure: after it no other change is begun."
    ),
]


def explain(
    run: RunArgument,
    measure: MeasureOption = False,
    seconds: SecondsOption = 60.0,
    json: JsonOption = False,
) -> Outcome:
    """Say why a run took its time, and what would shorten it.

    Advice is a change to run with. Its order follows an estimate; no change saves more than its
    bound. All of it comes from the record; only --measure simulates: it runs the changes in their
    order, each at the refresh phases of the record or more, and reports the gain of the means.
    """
    found = read_record(run, RunRecord)
    with told_if_contradictory(run):
        record = explain_run(found, str(run))
    if measure:
        with progress_line(is_wanted=not json, what="explain") as tell:
            record = measure_advice(found, record, seconds=seconds, tell=tell)
    return Outcome(record, explain_view(record))


BeforeArgument = Annotated[Path, typer.Argument(metavar="RUN.json", help="The record before.")]
AfterArgument = Annotated[Path, typer.Argument(metavar="RUN.json", help="The record after.")]


def compare(before: BeforeArgument, after: AfterArgument) -> Outcome:
    """Say what differs between two runs.

    What was set, the machine, times and counts.
    """
    records = [read_record(file, RunRecord) for file in (before, after)]
    with told_if_contradictory(before, after):
        record = compare_runs(records[0], records[1], str(before), str(after))
    return Outcome(record, _compare_view(record))


def _compare_view(record: CompareRecord) -> Text:
    view = Text(f"{record.before} -> {record.after}\n", style="bold")
    view.append(f"{_headline(record)}\n\n")
    for title, changes in (
        ("what was set", record.settings),
        ("the machine", record.machine),
        ("the outcome", record.verdicts),
    ):
        add_block(view, title, map(_change_line, changes))
    add_block(view, "figures", _figure_lines(record.figures))
    named = [each.model_copy(update={"name": PART_WORDS[each.name]}) for each in record.parts]
    add_block(view, "where the time went", _figure_lines(named, is_time=True))
    add_block(view, "by line of the kernels", _figure_lines(record.lines, is_time=True))
    view.rstrip()
    return view


def _headline(record: CompareRecord) -> str:
    if record.speedup is None:
        return "one of them took no time"
    if record.is_same_run and record.speedup == 1:
        return "the same run: program, parameters, machine and latency are equal"
    if record.speedup == 1:
        return "equally fast"
    is_faster = record.speedup > 1
    times = record.speedup if is_faster else 1 / record.speedup
    ratio = f"{times:.3f} times as {'fast' if is_faster else 'slow'}"
    if record.noise_ps is None:
        return f"{ratio}, at too few refresh phases to know the noise: run both without --phases"
    noise = format_ps(round(record.noise_ps))
    if record.is_within_noise:
        return f"no difference: {ratio}, inside the noise of {noise} over refresh phases"
    return f"{ratio}; noise over refresh phases {noise}" if record.noise_ps else ratio


def _change_line(change: FieldChange) -> str:
    return f"{change.name}: {_text(change.before)} -> {_text(change.after)}"


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _figure_lines(changes: Sequence[FigureChange], *, is_time: bool = False) -> Iterator[str]:
    for each in changes:
        texts = [
            format_ps(value) if value is not None and (is_time or each.name.endswith("_ps"))
            else _text(value)
            for value in (each.before, each.after)
        ]  # fmt: skip
        ratio = "" if each.ratio is None else f"  x {each.ratio:.3f}"
        yield f"{each.name:<36}{texts[0]:>14}{texts[1]:>14}{ratio}"
