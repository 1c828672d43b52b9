"""Ranks as sets of PEs, and the calls that they make together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from tilewright.collectives.operation import Call
from tilewright.collectives.tuning import NO_OPTIONS, CallOptions
from tilewright.collectives.work import Work
from tilewright.errors import CollectiveError
from tilewright.machine.coords import Grid, PeCoord
from tilewright.machine.node import place_name
from tilewright.runtime.placement.placement import Targets

RankPlaces = tuple[PeCoord, ...]
"""The PEs of a rank; those of the same place in all ranks are a lane."""


def sip_ranks(grid: Grid, num_ranks: int) -> tuple[RankPlaces, ...]:
    """All PEs of a SIP for each rank."""
    if type(num_ranks) is not int or not 1 <= num_ranks <= grid.num_sips:
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
    """What all ranks of a call must agree on, as one of them says it."""

    call: Call
    dtype: str
    reduction: str
    part_sizes: Mapping[int, int]  # elements of the parts that the rank has
    world_rank: int
    options: CallOptions = NO_OPTIONS

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.call, self.call.name, self.dtype, self.reduction, self.options

    def check(self, other: "Signature", where: str) -> None:
        """Refuse a rank that calls something else."""
        is_same = self._facts == other._facts and all(
            other.part_sizes.get(part, size) == size for part, size in self.part_sizes.items()
        )
        if not is_same:
            found = f"{other} by rank {other.world_rank}"
            expected = f"{self}, as rank {self.world_rank} calls it"
            raise CollectiveError(where, found, expected, "let all ranks call the same")

    def __str__(self) -> str:
        operation, has_own_word = self.call.operation, bool(self.call.word)
        sizes = " or ".join(map(str, sorted(set(self.part_sizes.values()))))
        text = f"{self.call.name} of {sizes} elements of {self.dtype}"
        if operation.combines and has_own_word:
            text = self.call.word  # the element of a barrier is nobody's affair
        elif operation.combines:
            text += f", {self.reduction}"
        if operation.has_root and not has_own_word:
            text += f", root {self.call.root}"
        said = str(self.options)
        return f"{text}, with {said}" if said else text


@dataclass(eq=False)
class Group:
    """A process group: some ranks of the world, numbered anew."""

    name: str
    ranks: tuple[RankPlaces, ...]
    world_ranks: tuple[int, ...]  # by rank of the group
    _meetings: dict[int, tuple[Any, list[Signature]]] = field(default_factory=dict)
    """By number of the call: how it runs, as the first one says, and who has come."""
    _num_calls: dict[int, int] = field(default_factory=dict)  # by rank
    last_work: dict[int, Work] = field(default_factory=dict)  # by rank; its next comes after

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

    def rank_of(self, world_rank: int) -> int:
        """Its number in this group; who is not in it is refused."""
        if world_rank not in self.world_ranks:
            found = f"rank {world_rank}"
            expected = f"one of the ranks {', '.join(map(str, self.world_ranks))}"
            fix = "name a rank of the group, or make a group that has it"
            raise CollectiveError(self.name, found, expected, fix)
        return self.world_ranks.index(world_rank)

    def begin_call(
        self, rank: int, signature: Signature, offer: Callable[[], Any]
    ) -> tuple[int, Any]:
        """The number of a rank's next call, and how it runs: as the first to come offers.

        All ranks must make the same calls in the same order.
        """
        number = self._num_calls.get(rank, 0)
        if number not in self._meetings:
            self._meetings[number] = offer(), []
        agreement, come = self._meetings[number]
        for other in come:
            other.check(signature, f"call {number} of {self.name}")
        self._num_calls[rank] = number + 1
        come.append(signature)
        if len(come) == self.size:
            del self._meetings[number]
        return number, agreement

    def forget_calls(self) -> None:
        """Begin anew after an error has ended all calls that were under way."""
        self._meetings.clear()
        self._num_calls.clear()
        self.last_work.clear()


Place = PeCoord | Sequence[int]
"""A PE, or the numbers of its SIP, its cube and itself."""

RankMap = Sequence[Place | Sequence[Place]] | Mapping[int, Place | Sequence[Place]]
"""The PE or PEs of each rank."""


def targets_of(pes: tuple[PeCoord, ...]) -> Targets:
    """The PEs of a rank: a SIP's, or one."""
    return Targets(
        tuple(sorted({pe.sip for pe in pes})),
        tuple(sorted({pe.cube for pe in pes})),
        tuple(sorted({pe.pe for pe in pes})),
    )


def num_mapped_ranks(rank_to_pe: RankMap) -> int:
    """How many ranks a map names; what is no map is refused."""
    if not isinstance(rank_to_pe, Mapping | Sequence):
        found = f"an object of {type(rank_to_pe).__name__}"
        raise CollectiveError("rank_to_pe", found, "a list of PEs", "name the PE of each rank")
    return len(rank_to_pe)


def places_of_ranks(
    grid: Grid, num_ranks: int, rank_to_pe: RankMap | None
) -> tuple[RankPlaces, ...]:
    """All PEs of a SIP for each rank, or the PE or PEs that a map names."""
    if rank_to_pe is None:
        return sip_ranks(grid, num_ranks)
    num_mapped = num_mapped_ranks(rank_to_pe)
    if num_mapped != num_ranks or num_mapped == 0:
        found = f"PEs of {num_mapped} ranks for {num_ranks}"
        raise CollectiveError("rank_to_pe", found, "those of each rank", "correct the map")
    if isinstance(rank_to_pe, Mapping) and set(rank_to_pe) != set(range(num_ranks)):
        found = f"the ranks {', '.join(map(str, rank_to_pe))}"
        expected = f"those from 0 to {num_ranks - 1}"
        raise CollectiveError("rank_to_pe", found, expected, "name each rank once")
    return tuple(_places(grid, rank, rank_to_pe[rank]) for rank in range(num_ranks))


def ranks_of_pes(pes: Sequence[PeCoord], num_ranks: int | None) -> tuple[RankPlaces, ...]:
    """Return one rank for each of the first ``num_ranks`` PEs, or for all of them."""
    if num_ranks is not None and num_ranks > len(pes):
        found, expected = f"{num_ranks} ranks", f"at most {len(pes)}, one a PE of the device"
        raise CollectiveError("world size", found, expected, "use fewer, or a larger machine")
    return tuple((pe,) for pe in pes[:num_ranks])


def _place(rank: int, entry: Any) -> PeCoord:
    if isinstance(entry, PeCoord):
        return entry
    if isinstance(entry, Sequence) and [isinstance(each, Integral) for each in entry] == [True] * 3:
        return PeCoord(*map(int, entry))
    found = f"{entry!r} for rank {rank}"
    expected = "a PE as (sip, cube, pe), or a list of such PEs"
    raise CollectiveError("rank_to_pe", found, expected, "correct the map")


def _places(grid: Grid, rank: int, entry: Any) -> RankPlaces:
    is_several = (
        isinstance(entry, Sequence)
        and not isinstance(entry, str)
        and any(isinstance(each, PeCoord | Sequence) for each in entry)
    )
    places = tuple(_place(rank, each) for each in (entry if is_several else [entry]))
    for place in places:
        if not grid.has(place):
            found = place_name(place)
            raise CollectiveError("rank_to_pe", found, "a PE of the machine", "correct the map")
    box = targets_of(places)
    if len(box.sips) * len(box.cubes) * len(box.pes) != len(places):
        found = f"the PEs {', '.join(map(place_name, places))} of rank {rank}"
        expected = "the same PEs in each of its cubes and SIPs"
        raise CollectiveError("rank_to_pe", found, expected, "let tensors be placed on all of them")
    return tuple(sorted(places))  # in the order in which tensors are placed on them
