"""What every peer returns."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ("PeerRun",)


@dataclass(frozen=True, slots=True)
class PeerRun:
    """Delivery times by message id, and what the run itself cost."""

    delivered_ps: Mapping[int, int]
    seconds: float  # wall time of the run, without building the model
    num_hops: int
    num_events: int  # all that went through the peer's event queue

    @property
    def us_per_hop(self) -> float:
        return self.seconds * 1e6 / self.num_hops

    @property
    def events_per_hop(self) -> float:
        return self.num_events / self.num_hops
