"""What ``tilewright explain`` and ``compare`` make of records, and what ``list`` knows."""

from typing import Literal

from pydantic import NonNegativeInt

from tilewright.records.document import Document, Fraction, JsonScalar

__all__ = (
    "CompareRecord",
    "ExplainRecord",
    "FieldChange",
    "FigureChange",
    "ListRecord",
    "PartShare",
    "ProgramParameter",
    "ProgramRow",
    "Remark",
)


class PartShare(Document):
    """One part of the breakdown."""

    part: str
    time_ps: NonNegativeInt
    share: Fraction


class Remark(Document):
    """Something that follows from the figures of a record; ``topic`` is for programs."""

    topic: str
    text: str


class ExplainRecord(Document):
    """Where the time of a run went, what bounds it, and what would change it."""

    kind: Literal["explain"] = "explain"
    schema_version: Literal[1] = 1
    source: str
    program: str
    machine: str
    latency_ps: NonNegativeInt
    bound_ps: NonNegativeInt | None
    parts: tuple[PartShare, ...]  # the greatest first, without those that are 0
    remarks: tuple[Remark, ...]


class FieldChange(Document):
    """Something that was set differently; None: one side does not have it."""

    name: str
    before: JsonScalar
    after: JsonScalar


class FigureChange(Document):
    """An integer of both records; the ratio is after / before, None where that has no meaning."""

    name: str
    before: int | None
    after: int | None
    ratio: float | None


class CompareRecord(Document):
    """What differs between two runs; equal figures are left out, but for the latency."""

    kind: Literal["compare"] = "compare"
    schema_version: Literal[1] = 1
    before: str  # the files
    after: str
    is_same_run: bool  # program, parameters, machine, seed and options are equal
    speedup: float | None  # latency before / after
    settings: tuple[FieldChange, ...]  # program, parameters, options, seed, versions
    machine: tuple[FieldChange, ...]
    verdicts: tuple[FieldChange, ...]  # status, values, bottleneck
    figures: tuple[FigureChange, ...]  # latency, bound, totals, counters
    parts: tuple[FigureChange, ...]
    lines: tuple[FigureChange, ...]  # of the kernels, on the critical path
    utilisation: tuple[FieldChange, ...]


class ProgramParameter(Document):
    """A parameter of a ready program; ``--param name=value`` sets it."""

    name: str
    type: str
    default: JsonScalar
    choices: tuple[JsonScalar, ...] = ()
    help: str = ""


class ProgramRow(Document):
    """A ready program."""

    name: str
    summary: str
    machine: str
    parameters: tuple[ProgramParameter, ...]


class ListRecord(Document):
    """All ready programs, or the one that was asked for."""

    kind: Literal["list"] = "list"
    schema_version: Literal[1] = 1
    programs: tuple[ProgramRow, ...]
