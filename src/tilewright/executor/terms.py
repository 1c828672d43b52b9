"""What a launch says to who runs it: terms for all programs, and a share for each PE."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright.engine.spec import Limits
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.executor.run import Replicated
from tilewright.executor.stream import Stream
from tilewright.language.kernel import Kernel
from tilewright.machine.coords import PeCoord
from tilewright.memory.sanitizer.sanitizer import Sanitizer


@dataclass(frozen=True, slots=True)
class Share:
    """What one PE does in a launch: programs by their ids, and the arguments that it sees."""

    pe: PeCoord
    ids: Sequence[tuple[int, ...]]
    arguments: Mapping[str, Any]  # checked


class Gatekeeper(Protocol):
    """Says when the programs of a stream may begin, and hears when all are issued.

    Both are called in the stream's own program of the hub, which may wait.
    """

    def begin(self, stream: Stream) -> None: ...
    def end(self, stream: Stream) -> None: ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all programs of a launch."""

    kernel: Kernel
    grid: tuple[int, ...]
    carries_data: bool = True
    neighbours: Neighbours | None = None
    post: Post | None = None
    """Rings that were installed before, in the place of neighbours."""
    installed: Mapping[PeCoord, Post] = field(default_factory=dict)
    """Rings that programs of a PE use if the launch has neither of these."""
    resident: int = 1
    """Programs of a PE that run at a time: each has its part of registers and TCM."""
    replicas: Sequence[Replicated] = ()
    observer: Any = None
    sanitizer: Sanitizer | None = None
    limits: Limits = field(default_factory=Limits)
