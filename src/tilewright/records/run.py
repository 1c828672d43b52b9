"""The record of one simulated run."""

from typing import Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from tilewright.records.document import Document, Fraction, JsonScalar, Sha256
from tilewright.records.versions import Versions

__all__ = ("RunRecord", "Totals", "WhatRan")


class WhatRan(Document):
    """The command and its arguments, enough to run it again."""

    command: str
    arguments: dict[str, JsonScalar] = Field(default_factory=dict)


class Totals(Document):
    """The figures of the run as a whole."""

    time_ps: NonNegativeInt
    num_bytes: NonNegativeInt
    num_events: NonNegativeInt


class RunRecord(Document):
    """What ran, on what, how long it took and why."""

    kind: Literal["run"] = "run"
    schema_version: Literal[1] = 1
    what: WhatRan
    versions: Versions
    machine_hash: Sha256 | None = None  # None: the run has no machine
    input_hashes: dict[str, Sha256] = Field(default_factory=dict)
    seed: NonNegativeInt | None = None  # None: nothing in the run is random
    totals: Totals
    breakdown_ps: dict[str, NonNegativeInt]
    utilisation: dict[str, Fraction] = Field(default_factory=dict)
    bounds_ps: dict[str, NonNegativeInt] = Field(default_factory=dict)
    counters: dict[str, NonNegativeInt] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_breakdown(self) -> Self:
        parts_ps = sum(self.breakdown_ps.values())
        if parts_ps != self.totals.time_ps:
            message = f"breakdown_ps adds up to {parts_ps}, but totals.time_ps is"
            raise ValueError(f"{message} {self.totals.time_ps}")
        return self

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        for name, bound_ps in self.bounds_ps.items():
            if bound_ps > self.totals.time_ps:
                message = f"lower bound {name!r} is {bound_ps}, above totals.time_ps"
                raise ValueError(f"{message} {self.totals.time_ps}")
        return self
