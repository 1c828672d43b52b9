"""The record of one simulated run, or of a sweep of runs: what ran, on what, how long, and why."""

from typing import Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from tilewright.records.document import (
    Document,
    Fraction,
    JsonScalar,
    Sha256,
    SimulatedDocument,
    Versions,
)
from tilewright.records.machine import MachineFigures
from tilewright.records.phases import Timed
from tilewright.records.run.part import (
    Bottleneck,
    ChannelUse,
    PathTimes,
    ResourceUse,
    RunParts,
    SanitizerFinding,
)

Scalars = dict[str, JsonScalar]
NUMBERS = ("_ps", "_bytes", "_clocks", "_cycles", "_per_us", "_bursts", "_bits", ".hz")
"""Endings of fields of a machine that are whole numbers."""
OF_USER = ".parameters."  # of a user's block: these may be anything


class WhatRan(Document):
    """The command, what it ran and how it was told to, enough to run it again."""

    command: str
    program: str  # the name of a ready program, or a Python file
    options: Scalars = Field(default_factory=dict)  # of the command
    file_hash: Sha256 | None = None  # of the Python file


class MachineOfRun(Document):
    """The machine, so that two runs can be compared field by field."""

    name: str
    source: str  # the file or preset, as it was named
    overrides: tuple[str, ...] = ()
    figures: MachineFigures
    fields: Scalars = Field(default_factory=dict)  # every value, by its path in a machine file
    is_own: bool = False  # the program describes it itself, so that --set does not reach it

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name, value in self.fields.items():
            is_number = type(value) is int and 0 <= value < 2**63
            if name.endswith(NUMBERS) and OF_USER not in name and not is_number:
                raise ValueError(f"{name} is {value!r}, and no whole number of 63 bits")
        return self


class Totals(Document):
    """The figures of the simulation as a whole, deploys and checks included."""

    time_ps: NonNegativeInt
    num_events: NonNegativeInt
    num_launches: NonNegativeInt
    loaded_bytes: NonNegativeInt
    stored_bytes: NonNegativeInt


class LaunchRow(Document):
    """One launch. Its latency is dispatch, execution and completion, and nothing else."""

    name: str
    num_programs: NonNegativeInt
    num_pes: NonNegativeInt
    submitted_ps: NonNegativeInt
    latency_ps: NonNegativeInt
    dispatch_ps: NonNegativeInt
    execution_ps: NonNegativeInt
    completion_ps: NonNegativeInt
    skew_ps: NonNegativeInt  # from the first start of a program to the last
    last_pe: str | None  # where the last program ended; None: there was no program
    is_measured: bool  # part of the window that the run's latency is of

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        parts_ps = self.dispatch_ps + self.execution_ps + self.completion_ps
        if parts_ps != self.latency_ps:
            message = f"the parts of launch {self.name!r} add up to {parts_ps},"
            raise ValueError(f"{message} but its latency_ps is {self.latency_ps}")
        return self


class RunRecord(Timed):
    """Of an interrupted run the figures are those of the launches that had completed by then."""

    kind: Literal["run"] = "run"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    status: Literal["complete", "interrupted"] = "complete"
    ok: bool  # complete, values right where there are any, no failed check
    failures: tuple[str, ...] = ()  # checks that do not hold
    what: WhatRan
    versions: Versions
    machine: MachineOfRun
    machine_hash: Sha256
    parameters: Scalars = Field(default_factory=dict)  # of the program
    seed: NonNegativeInt | None = None  # None: nothing in the run is random
    limits: dict[str, PositiveInt] = Field(default_factory=dict)
    """The most programs of a launch, commands of a program, events and simulated time; empty in
    records from before there were limits."""
    # latency_ps: from the first submission of the measured launches to their end
    bound_ps: NonNegativeInt | None = None  # None: nobody said what the least time is
    bound_latency_ps: NonNegativeInt | None = None
    """Part of ``bound_ps``; the rest is work at the rate of its resource. None: in the bounds of
    earlier records latencies do not count."""
    bound_resource: str | None = None  # "latency": it is all latency
    bounds_ps: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """By resource: what it takes at least, with the latencies before and behind it."""
    ratio: PositiveFloat | None = None  # mean latency / bound
    breakdown_ps: RunParts
    lines_ps: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """Of the critical path: by op and line of a kernel, what its commands took and waited for; the
    longest of them."""
    path: PathTimes | None = None  # None: nobody traced it
    bottleneck: str  # in words
    bottleneck_figures: Bottleneck | None = None  # None: no time passed
    values_ok: bool | None = None  # None: nothing to check, or nothing to check it with
    max_error: NonNegativeFloat | None = None  # relative to the norm of a row
    tolerance: NonNegativeFloat | None = None
    totals: Totals
    utilisation: dict[str, Fraction] = Field(default_factory=dict)  # the most used, while measured
    resources: tuple[ResourceUse, ...] = ()  # the busiest first; empty: nobody looked
    channels: ChannelUse | None = None  # of the slice with the busiest pseudo-channel
    counters: dict[str, NonNegativeInt] = Field(default_factory=dict)  # of the measured launches
    num_pes: NonNegativeInt = 0  # that ran programs of the measured launches, each counted once
    launches: tuple[LaunchRow, ...] = ()
    findings: tuple[SanitizerFinding, ...] | None = None  # None: nobody looked for any
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_breakdown(self) -> Self:
        parts_ps = self.breakdown_ps.total_ps
        if parts_ps != self.latency_ps:
            message = f"breakdown_ps adds up to {parts_ps}, but latency_ps is {self.latency_ps}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _check_ratio(self) -> Self:
        if (self.ratio is None) != (not self.bound_ps or not self.latency_ps):
            raise ValueError("ratio is there if, and only if, bound_ps is, and neither time is 0")
        return self

    @model_validator(mode="after")
    def _check_bound(self) -> Self:
        if (self.bound_latency_ps or 0) > (self.bound_ps or 0):
            raise ValueError("bound_latency_ps is more than bound_ps, of which it is a part")
        return self

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        is_right = self.values_ok is not False and not self.failures and not self.findings
        if self.ok != (is_right and self.status == "complete"):
            raise ValueError("ok must be true if, and only if, the run is complete and right")
        return self


class SweepPoint(Timed):
    """One run; ``parameters`` are those that the sweep sets."""

    parameters: dict[str, JsonScalar]
    ok: bool
    bound_ps: NonNegativeInt | None
    ratio: PositiveFloat | None
    breakdown_ps: RunParts
    bottleneck: str
    values_ok: bool | None
    fitted: str | None = None  # defaults that the machine had no room for, and what was taken

    @model_validator(mode="after")
    def _check_breakdown(self) -> Self:
        if self.breakdown_ps.total_ps != self.latency_ps:
            raise ValueError("breakdown_ps does not add up to latency_ps")
        return self


class RunSweepRecord(SimulatedDocument):
    """Points in the order in which they ran; of an interrupted sweep those that were complete."""

    kind: Literal["run_sweep"] = "run_sweep"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    status: Literal["complete", "interrupted"] = "complete"
    program: str
    parameters: dict[str, JsonScalar]  # equal for all points
    seed: NonNegativeInt
    points: tuple[SweepPoint, ...]
