"""What the generator may know of where kernels run: numbers, never a machine."""

from dataclasses import dataclass, field
from enum import StrEnum

from tilewright.errors import CodegenError

__all__ = ("Deal", "Merge", "Target")

_COUNTS = (
    "rows",
    "pages",
    "members",
    "workers",
    "register_bytes",
    "on_chip_bytes",
    "spill_bytes_per_us",
    "memory_bytes_per_us",
)


class Deal(StrEnum):
    """Which pages of a row a member has."""

    WHOLE = "whole"  # the one member has all
    DEALT = "dealt"  # page p belongs to member p mod members
    CONTIGUOUS = "contiguous"  # neighbouring pages, as many for each but the last


class Merge(StrEnum):
    """Through what the parts of a row are joined."""

    MEMORY = "memory"
    IPCQ = "ipcq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Workers that each have a memory of their own, and the rows that are dealt to them.

    A row is divided among ``members`` workers, each of which runs one program for it: it looks at
    all its pages, tile by tile. ``pages`` bounds the pages of a member; blocks that a kernel keeps
    for a whole row have that size.
    """

    rows: int
    pages: int
    members: int = 1
    deal: Deal = Deal.WHOLE
    workers: int = 256
    register_bytes: int = 512 * 1024
    on_chip_bytes: int = 12 * 1024 * 1024  # registers spill into it
    spill_bytes_per_us: int = 512_000
    memory_bytes_per_us: int = 218_000  # what a worker's own memory delivers
    launch_ps: int = 300_000  # dispatch of a kernel and its completion
    message_ps: int = 50_000  # from a member to another, if they have queues
    merges: frozenset[Merge] = field(default_factory=lambda: frozenset({Merge.MEMORY}))

    def __post_init__(self) -> None:
        for name in _COUNTS:
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise CodegenError(f"target.{name}", repr(number), "at least 1", "correct it")
        if (self.members == 1) != (self.deal is Deal.WHOLE):
            found = f"{self.members} members and pages {self.deal}"
            expected = "one member with the whole row, or several that share it"
            raise CodegenError("target", found, expected, "correct one of them")
