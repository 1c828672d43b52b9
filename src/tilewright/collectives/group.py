"""Ranks as sets of PEs, and the calls that they make together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.collectives.operation import Call
from tilewright.errors import CollectiveError
from tilewright.machine.coords import PeCoord
from tilewright.machine.grid import Grid
from tilewright.machine.name import place_name

__all__ = ("Group", "RankPlaces", "Signature", "sip_ranks")

RankPlaces = tuple[PeCoord, ...]
"""The PEs of a rank; those of the same place in all ranks are a lane."""


def sip_ranks(grid: Grid, num_ranks: int) -> tuple[RankPlaces, ...]:
    """All PEs of a SIP for each rank."""
    if not 1 <= num_ranks <= grid.num_sips:
        found, expected = f"{num_ranks} ranks", f"1 to {grid.num_sips}, the SIPs of the machine"
        fix = "start fewer, or say which PE each rank is"
        raise CollectiveError("process group", found, expected, fix)
    pes: list[list[PeCoord]] = [[] for _ in range(num_ranks)]
    for pe in grid.pes():
        if pe.sip < num_ranks:
            pes[pe.sip].append(pe)
    return tuple(map(tuple, pes))


@dataclass(frozen=True, slots=True)
class Signature:
    """What all ranks of a call must agree on; the first of them says it."""

    call: Call
    dtype: str
    sizes: tuple[int, ...]  # elements of the tensors
    reduction: str
    first_rank: int

    def check(self, other: "Signature", number: int) -> None:
        """Refuse a rank that calls something else."""
        mine = (self.call, self.dtype, self.sizes, self.reduction)
        if mine != (other.call, other.dtype, other.sizes, other.reduction):
            where = f"collective {number} of rank {other.first_rank}"
            expected = f"{self}, as rank {self.first_rank} calls it"
            raise CollectiveError(where, str(other), expected, "let all ranks call the same")

    def __str__(self) -> str:
        what = f"{self.call.operation.value} of {self.sizes} {self.dtype}"
        return f"{what}, {self.reduction}, root {self.call.root}"


@dataclass(eq=False)
class Group:
    """A process group: some ranks of the world, numbered anew."""

    name: str
    ranks: tuple[RankPlaces, ...]
    world_ranks: tuple[int, ...]  # by rank of the group
    _signatures: dict[int, Signature] = field(default_factory=dict)
    _layouts: dict[int, Any] = field(default_factory=dict)
    _num_calls: dict[int, int] = field(default_factory=dict)  # by rank

    def __post_init__(self) -> None:
        seen: dict[PeCoord, int] = {}
        for rank, pes in enumerate(self.ranks):
            if len(pes) != len(self.ranks[0]) or not pes:
                found = f"{len(pes)} PEs of rank {rank} and {len(self.ranks[0])} of rank 0"
                fix = "give each rank as many"
                raise CollectiveError(f"group {self.name!r}", found, "ranks of one size", fix)
            for pe in pes:
                if pe in seen:
                    found = f"{place_name(pe)} in ranks {seen[pe]} and {rank}"
                    raise CollectiveError(f"group {self.name!r}", found, "a PE once", "correct it")
                seen[pe] = rank

    @property
    def size(self) -> int:
        return len(self.ranks)

    def lane_mates(self, lane: int, ranks: Sequence[int] | None = None) -> tuple[PeCoord, ...]:
        """The PEs of a lane, by rank."""
        chosen = range(self.size) if ranks is None else ranks
        return tuple(self.ranks[rank][lane] for rank in chosen)

    def begin_call(self, rank: int, signature: Signature) -> int:
        """The number of a rank's next call; it must be the one that the other ranks make."""
        number = self._num_calls.get(rank, 0)
        self._num_calls[rank] = number + 1
        first = self._signatures.setdefault(number, signature)
        first.check(signature, number)
        return number

    def agree(self, number: int, layout: Any) -> Any:
        """How the tensors of a call lie: as the first rank that called says."""
        return self._layouts.setdefault(number, layout)
