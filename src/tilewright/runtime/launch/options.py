"""What a launch may say beside its kernel and its arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.machine.coords import PeCoord
from tilewright.runtime.tensor.tensor import Tensor, TensorOwner

Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]
On = Sequence[PeCoord] | Callable[..., PeCoord] | Tensor
"""PEs in turn; a function of a program's ids; the owners of equal fractions of a tensor."""


class LaunchOwner(TensorOwner, Protocol):
    """The context that launches, and that made the tensors."""

    def device_pes(self) -> Sequence[PeCoord]:
        """Return the PEs of the caller's current device, in the order of their coordinates."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """All of a launch but the kernel and its arguments."""

    name: str | None = None
    grid: Grid | None = None
    on: On | None = None
    neighbours: Neighbours | Post | Mapping[Any, Mapping[str, Any]] | None = None
    """Rings for this launch, by PE or program and direction; a Post is rings that are there.

    None: each PE uses the rings that were installed there last, if there are any.
    """
    resident: int = 1
    synchronised_start: bool = False
    carries_data: bool = True
    earliest_start_ps: int = 0  # simulated time before which no program begins
