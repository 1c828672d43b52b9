"""The record of `tilewright validate`: every oracle with what it expected and what it found."""

from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from tilewright.records.document import Document, Versions


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
