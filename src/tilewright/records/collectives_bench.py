"""The record of the collectives' benchmark: simulated figures, equal in every run."""

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tilewright.records.document import Document
from tilewright.records.phases import PhaseSpread
from tilewright.records.versions import Versions


class CollectiveRow(Document):
    """One collective; bytes are of a rank's tensor, times from its first program to its last."""

    series: str
    operation: str
    algorithm: str
    topology: str
    ranks: PositiveInt
    bytes: PositiveInt
    buffer: Literal["tcm", "sram", "hbm"]
    latency_ps: PositiveInt
    phases: PhaseSpread | None = None  # latency over refresh phases, of which its own is the first
    alpha_beta_ps: PositiveInt  # of blocks that are not cut, along the longest way of the plan
    bound_ps: NonNegativeInt  # what no algorithm can beat
    bound_latency_ps: NonNegativeInt | None = None  # part of it; None: latencies do not count
    ratio: PositiveFloat | None  # mean latency / bound; None: no bound
    algbw_gbs: PositiveFloat  # bytes / mean latency
    busbw_gbs: PositiveFloat  # times 2 (ranks - 1) / ranks
    bottleneck: str  # the link that was busy for longest
    bottleneck_share: NonNegativeFloat  # of the latency

    @property
    def rate_ps(self) -> int:
        """Part of the bound that is work over rates."""
        return self.bound_ps - (self.bound_latency_ps or 0)

    @property
    def mean_ps(self) -> float:
        """Latency that stands for the row: the mean over refresh phases."""
        return self.latency_ps if self.phases is None else self.phases.mean_ps

    @property
    def least_ps(self) -> int:
        """Smallest latency over refresh phases: none of them may be below the bound."""
        return self.latency_ps if self.phases is None else self.phases.min_ps


class EventRow(Document):
    """What simulating the hierarchical all-reduce of PEs takes."""

    ranks: PositiveInt
    chunks: PositiveInt  # of a rank's tensor; each is of the same size
    events: PositiveInt


class CollectivesBenchRecord(Document):
    """How near collectives come to the links, and what the simulator pays for more ranks."""

    kind: Literal["collectives-bench"] = "collectives-bench"
    schema_version: Literal[1, 2] = 2  # 1: without phases
    versions: Versions
    alpha_beta_worst_error: NonNegativeFloat | None  # None: the series was not asked for
    whole_device_worst_ratio: PositiveFloat | None  # latency of chunks / alpha-beta without cuts
    bus_fraction_large: PositiveFloat | None  # the least, of what leaves a SIP
    bus_spread: NonNegativeFloat | None  # greatest / least - 1
    torus6_64k_ratio: PositiveFloat | None  # to the bound of the links or the path, if longer
    event_growth: PositiveFloat | None  # of the events, over the growth of ranks x chunks
    rows: tuple[CollectiveRow, ...]
    events: tuple[EventRow, ...]
