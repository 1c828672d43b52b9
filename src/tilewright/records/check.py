"""Simulated figures beside what they must be: of ``tilewright probe`` and ``validate``."""

from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from tilewright.records.document import Document, SimulatedDocument, Versions
from tilewright.records.phases import Timed


class Breakdown(Document):
    """Picoseconds along the critical path; they add up to the latency."""

    overhead: NonNegativeInt  # routers, ports, endpoints, switches
    wire: NonNegativeInt
    serialisation: NonNegativeInt  # flits of the issuer's own packets
    queueing: NonNegativeInt  # behind others' packets, or without a credit in a crowd
    memory: NonNegativeInt
    refresh: NonNegativeInt


class ProbeRow(Timed):
    """One case at one size; bytes are per issuer, bandwidth counts all bytes of the case."""

    case: str
    bytes: PositiveInt
    issuers: PositiveInt
    latency_ps: PositiveInt  # at the machine's own refresh phase, as is the breakdown
    bound_ps: PositiveInt  # no queueing, no refresh
    ratio: PositiveFloat  # mean latency / bound
    bandwidth_gbs: PositiveFloat  # by the mean latency
    bound_gbs: PositiveFloat
    refresh_limited_gbs: PositiveFloat  # of the slices that the case touches
    utilisation: NonNegativeFloat  # of the bottleneck; refresh counts as use of a memory
    bottleneck: str
    breakdown_ps: Breakdown


class SkippedCase(Document):
    """A case that the machine has no parts for."""

    case: str
    reason: str


class ProbeRecord(SimulatedDocument):
    """All rows, and what is wrong with them if anything is."""

    kind: Literal["probe"] = "probe"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    cases: tuple[ProbeRow, ...]
    skipped: tuple[SkippedCase, ...] = ()
    failures: tuple[str, ...] = ()  # checks that do not hold


class OracleRow(Document):
    """One oracle. The four figures are in ``unit``; ``rule`` says where the tolerance comes from.

    The error of a bound is what it is broken by, else the distance from what was expected.
    """

    name: str
    group: str
    unit: str
    rule: str
    expected: int | float
    found: int | float
    error: NonNegativeInt | NonNegativeFloat
    tolerance: NonNegativeInt | NonNegativeFloat
    ok: bool


class ValidateRecord(Document):
    """All oracles that were asked for, in the order of their table."""

    kind: Literal["validate"] = "validate"
    schema_version: Literal[1] = 1
    versions: Versions
    ok: bool
    oracles: tuple[OracleRow, ...]
    skipped: tuple[str, ...] = ()  # groups that this installation cannot run, with the reason

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        if self.ok != all(row.ok for row in self.oracles):
            raise ValueError("ok must be true if, and only if, every oracle is")
        return self
