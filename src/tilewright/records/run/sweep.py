"""What ``tilewright run --sweep`` found: one program at several points of its parameters."""

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveFloat, model_validator

from tilewright.records.document import Document, JsonScalar, Sha256, Versions
from tilewright.records.phases import Timed
from tilewright.records.run.part import RunParts


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


class RunSweepRecord(Document):
    """Points in the order in which they ran; of an interrupted sweep those that were complete."""

    kind: Literal["run_sweep"] = "run_sweep"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    status: Literal["complete", "interrupted"] = "complete"
    ok: bool
    program: str
    parameters: dict[str, JsonScalar]  # equal for all points
    machine: str
    machine_hash: Sha256
    seed: NonNegativeInt
    versions: Versions
    points: tuple[SweepPoint, ...]
