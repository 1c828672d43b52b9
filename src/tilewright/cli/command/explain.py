"""``tilewright explain``: why a run took its time."""

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.progress import progress_line
from tilewright.records import RunRecord, read_record, told_if_contradictory
from tilewright.report.explain.run import explain_run
from tilewright.report.explain.table import explain_view
from tilewright.studies.explain_measure import measure_advice

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
