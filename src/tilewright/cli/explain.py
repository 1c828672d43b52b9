"""``tilewright explain``: why a run took its time."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.records import RunRecord, read_record
from tilewright.records.explain import ExplainRecord
from tilewright.report.explain import explain_run
from tilewright.report.run_words import PART_WORDS, share_text
from tilewright.units import format_ps

__all__ = ("explain",)

LEAST_SHARE = 0.01
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN.json", help="A record of run --record or run --json.")
]


def explain(run: RunArgument, _json: JsonOption = False) -> Outcome:
    """Say why a run took its time, and what would change that.

    Also what bounds it. All of it follows from the record; nothing is simulated again.
    """
    record = explain_run(read_record(run, RunRecord), str(run))
    return Outcome(record, _view(record))


def _view(record: ExplainRecord) -> Text:
    view = Text()
    view.append(record.program, style="bold")
    view.append(f" on {record.machine}: {format_ps(record.latency_ps)}\n\n")
    for part in record.parts:
        if part.share >= LEAST_SHARE:
            view.append(f"  {share_text(part.share):>5}  {format_ps(part.time_ps):>11}  ")
            view.append(f"{PART_WORDS[part.part]}\n")
    view.append("\n")
    for remark in record.remarks:
        view.append(f"- {remark.text}\n")
    view.rstrip()
    return view
