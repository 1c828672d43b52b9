"""The records of speed benchmarks: wall-clock figures, so they differ between runs."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document, Seconds, Sha256
from tilewright.records.versions import Versions


class EngineRatios(Document):
    """Packet hops per second as a multiple of SimPy at message level; None: no compiled core."""

    native_open_loop: PositiveFloat | None
    native_closed_loop: PositiveFloat | None
    native_finite_buffers: PositiveFloat | None
    reference_open_loop: PositiveFloat | None


class EngineWorkloadRow(Document):
    """One implementation on one workload."""

    workload: str
    implementation: str
    seconds: Seconds
    hops: PositiveInt
    hops_per_s: PositiveFloat
    events_per_hop: NonNegativeFloat | None  # None: the implementation does not count its events
    simulated_ps: PositiveInt  # when the last message arrived
    digest: Sha256  # of the results: equal digests prove equal results


class GrowthRow(Document):
    """One size of the growth series, at the same load per node."""

    nodes: PositiveInt
    hops: PositiveInt
    seconds: Seconds


class EngineBenchRecord(Document):
    """Engines beside their peers, in one run."""

    kind: Literal["engine-bench"] = "engine-bench"
    schema_version: Literal[1] = 1
    versions: Versions
    seed: NonNegativeInt
    identical: bool  # all digests of a workload are equal
    ratios: EngineRatios
    growth_64_to_1024: PositiveFloat | None
    growth: tuple[GrowthRow, ...]
    workloads: tuple[EngineWorkloadRow, ...]
    simpy_timeouts_per_s: PositiveFloat | None
    invariant_cost: float  # share of a run spent on its checks; noise may make it negative
