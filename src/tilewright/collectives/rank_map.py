"""Which PEs ranks are: all of a SIP, or what a map of the user's says."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from tilewright.collectives.group import RankPlaces, sip_ranks
from tilewright.collectives.staging import targets_of
from tilewright.errors import CollectiveError
from tilewright.machine.coords import Grid, PeCoord
from tilewright.machine.node import place_name

Place = PeCoord | Sequence[int]
"""A PE, or the numbers of its SIP, its cube and itself."""

RankMap = Sequence[Place | Sequence[Place]] | Mapping[int, Place | Sequence[Place]]
"""The PE or PEs of each rank."""


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
    return tuple(_places(grid, rank, entry) for rank, entry in enumerate(_by_rank(rank_to_pe)))


def ranks_of_pes(pes: Sequence[PeCoord], num_ranks: int | None) -> tuple[RankPlaces, ...]:
    """Return one rank for each of the first ``num_ranks`` PEs, or for all of them."""
    if num_ranks is not None and num_ranks > len(pes):
        found, expected = f"{num_ranks} ranks", f"at most {len(pes)}, one a PE of the device"
        raise CollectiveError("world size", found, expected, "use fewer, or a larger machine")
    return tuple((pe,) for pe in pes[:num_ranks])


def _by_rank(rank_to_pe: RankMap) -> Sequence[Any]:
    """A list has the ranks in order; a mapping names each of them."""
    if not isinstance(rank_to_pe, Mapping):
        return rank_to_pe
    if set(rank_to_pe) != set(range(len(rank_to_pe))):
        found = f"the ranks {', '.join(map(str, rank_to_pe))}"
        expected = f"those from 0 to {len(rank_to_pe) - 1}"
        raise CollectiveError("rank_to_pe", found, expected, "name each rank once")
    return [rank_to_pe[rank] for rank in range(len(rank_to_pe))]


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
