"""The record of one simulated run: what ran, on what, how long it took and why."""

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, model_validator

from tilewright.records.document import Document, Fraction, JsonScalar, Sha256
from tilewright.records.machine_show import MachineFigures
from tilewright.records.run_finding import SanitizerFinding
from tilewright.records.run_parts import Bottleneck, RunParts
from tilewright.records.versions import Versions

__all__ = ("LaunchRow", "MachineOfRun", "RunRecord", "Totals", "WhatRan")

Scalars = dict[str, JsonScalar]


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


class RunRecord(Document):
    """Of an interrupted run the figures are those of the launches that had completed by then."""

    kind: Literal["run"] = "run"
    schema_version: Literal[1] = 1
    status: Literal["complete", "interrupted"] = "complete"
    ok: bool  # complete, values right where there are any, no failed check
    failures: tuple[str, ...] = ()  # checks that do not hold
    what: WhatRan
    versions: Versions
    machine: MachineOfRun
    machine_hash: Sha256
    parameters: Scalars = Field(default_factory=dict)  # of the program
    seed: NonNegativeInt | None = None  # None: nothing in the run is random
    latency_ps: NonNegativeInt  # from the first submission of the measured launches to their end
    bound_ps: NonNegativeInt | None = None  # None: nobody said what the least time is
    bound_resource: str | None = None
    bounds_ps: dict[str, NonNegativeInt] = Field(default_factory=dict)  # by resource
    ratio: PositiveFloat | None = None  # latency / bound
    breakdown_ps: RunParts
    lines_ps: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """Of the critical path: by op and line of a kernel, what its commands took and waited for; the
    longest of them."""
    bottleneck: str  # in words
    bottleneck_figures: Bottleneck | None = None  # None: no time passed
    values_ok: bool | None = None  # None: nothing to check, or nothing to check it with
    max_error: NonNegativeFloat | None = None  # relative to the norm of a row
    tolerance: NonNegativeFloat | None = None
    totals: Totals
    utilisation: dict[str, Fraction] = Field(default_factory=dict)  # the most used, while measured
    counters: dict[str, NonNegativeInt] = Field(default_factory=dict)  # of the measured launches
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
    def _check_verdict(self) -> Self:
        is_right = self.values_ok is not False and not self.failures and not self.findings
        if self.ok != (is_right and self.status == "complete"):
            raise ValueError("ok must be true if, and only if, the run is complete and right")
        return self
