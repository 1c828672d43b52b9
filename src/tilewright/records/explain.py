"""What ``tilewright explain`` and ``compare`` make of records, and what ``list`` knows."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from tilewright.records.document import Document, Fraction, JsonScalar
from tilewright.records.run.part import ChannelUse, ResourceUse


class PartShare(Document):
    """One part of the breakdown."""

    part: str
    time_ps: NonNegativeInt
    share: Fraction


class Remark(Document):
    """Something that follows from the figures of a record; ``topic`` is for programs."""

    topic: str
    text: str


class Advice(Document):
    """A change of the machine that can be run, and how much time it saves: shares of the mean.

    ``bound`` is of ``least_ps``, which no run with the change is shorter than, if the program does
    the same commands; ``worth`` is an estimate. The rest is there if it was measured.
    """

    option: str  # of ``tilewright run``, as it is typed: "--set pe.gemm.hz=2000000000"
    field: str
    least_ps: NonNegativeInt
    bound: Fraction
    worth: Fraction
    reason: str
    mean_ps: NonNegativeFloat | None = None  # latency with the change, over refresh phases
    gain: float | None = None  # of the means at the same phases; negative: it got slower
    gain_half_width: NonNegativeFloat | None = None  # confidence 95 %; None: one phase is known
    num_phases: PositiveInt | None = None


class ExplainRecord(Document):
    """Where the time of a run went, what bounds it, and what would change it."""

    kind: Literal["explain"] = "explain"
    schema_version: Literal[1] = 1
    source: str
    program: str
    machine: str
    latency_ps: NonNegativeInt  # at the machine's own refresh phase, of which the parts are
    mean_ps: NonNegativeFloat = 0.0  # over refresh phases
    bound_ps: NonNegativeInt | None
    parts: tuple[PartShare, ...]  # the greatest first, without those that are 0
    remarks: tuple[Remark, ...]
    resources: tuple[ResourceUse, ...] = ()  # the busiest first
    channels: ChannelUse | None = None
    advice: tuple[Advice, ...] = ()  # the most worth first
    notes: tuple[str, ...] = ()  # on advice: why there is none, what was not measured


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
    schema_version: Literal[1, 2] = 2  # 1: without is_within_noise
    before: str  # the files
    after: str
    is_same_run: bool  # program, parameters, machine, seed and options are equal
    speedup: float | None  # mean latency before / after
    noise_ps: NonNegativeFloat | None = None
    """Half-width of the difference of the means. None: of a side only one refresh phase is known,
    and it is shorter than 20 intervals."""
    is_within_noise: bool | None = None  # the means differ by no more than that
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
