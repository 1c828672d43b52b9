"""Which PEs learn where the bytes of a tensor are: a frozen plan of messages, and its undoing.

A shard is a range of the tensor's virtual bytes that lies in one PE's slice. A range that several
PEs have is replicated, and every copy has the same virtual addresses. Who learns of it is a matter
of *sight*:

- ``OWN``: each PE learns of the ranges that it has, and of no others. Ranges of different PEs may
  overlap: such bytes have as many physical ones.
- ``SIP``: no SIP learns of another's shards. A range with one copy in the SIP goes to all PEs of
  the SIP, or, if no other PE of the SIP has a shard, to those of its cube. Of a range with copies
  in several cubes, each cube's copy goes to all PEs of that cube. Of a range with several copies in
  one cube, each copy goes to the PE that has it and to no other: a PE without a copy does not see
  the range, rather than one of its neighbours' copies.
- ``ALL``: every PE that has a shard learns of every range. Of copies it sees the nearest: its own,
  else its cube's, else its SIP's; of several as near, those in a cube of its cube's number, then
  those of its own number, then the lowest.

What goes to the same PEs goes in one message. A plan is undone by the reverse: the same targets in
the reverse order, with the ranges of each message.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from operator import attrgetter
from typing import assert_never

from tilewright.errors import RegistryError
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.address import RangeMapping, VirtualRange
from tilewright.memory.runs import RunIndex, is_aligned


class Sight(Enum):
    """How far a PE sees the bytes of a tensor that it has a shard of."""

    OWN = "own"
    SIP = "sip"
    ALL = "all"


@dataclass(frozen=True, slots=True, order=True)
class ShardRange:
    """Neighbouring bytes of one shard, and the PE that has them in its slice."""

    home: PeCoord
    mapping: RangeMapping


@dataclass(frozen=True, slots=True)
class MapTarget:
    """The PEs that a message is for: one of each cube, or all."""

    sip: int
    cubes: tuple[int, ...]
    pe: int | None = None  # None: all

    def has(self, coord: PeCoord) -> bool:
        is_there = coord.sip == self.sip and coord.cube in self.cubes
        return is_there and self.pe in (None, coord.pe)


@dataclass(frozen=True, slots=True)
class MapMsg:
    """Adds translations."""

    target: MapTarget
    mappings: tuple[RangeMapping, ...]

    @property
    def ranges(self) -> tuple[VirtualRange, ...]:
        """What the PEs see from then on."""
        return tuple(mapping.virtual for mapping in self.mappings)


@dataclass(frozen=True, slots=True)
class UnmapMsg:
    """Takes translations out."""

    target: MapTarget
    ranges: tuple[VirtualRange, ...]


@dataclass(frozen=True, slots=True)
class MappingPlan:
    """What to send before the first access to a tensor, and after the last."""

    steps: tuple[MapMsg, ...]

    def map_messages(self) -> tuple[MapMsg, ...]:
        return self.steps

    def unmap_messages(self) -> tuple[UnmapMsg, ...]:
        return tuple(UnmapMsg(step.target, step.ranges[::-1]) for step in reversed(self.steps))


def num_entries(ranges: Iterable[VirtualRange], page_bytes: int) -> int:
    """Return how many entries a message has for ranges: one for each run of neighbouring pages.

    Ranges that touch are entries of their own. Two with a gap between them that has no whole page
    are one entry: they lie in neighbouring pages of one PE.
    """
    in_order = sorted(ranges, key=attrgetter("first"))
    if any(each.times > 1 for each in in_order):
        end = max(each.end for each in in_order)
        if is_aligned(in_order, page_bytes, end):
            return sum(each.times for each in in_order)
        singles = (single for each in in_order for single in each.single())
        in_order = sorted(singles, key=attrgetter("first"))
    return len(in_order) - sum(
        before.end < after.first and after.first // page_bytes <= (before.end - 1) // page_bytes + 1
        for before, after in pairwise(in_order)
    )


def plan_mapping(
    name: str,
    shards: Iterable[ShardRange],
    sight: Sight = Sight.SIP,
    cubes: Sequence[int] = (),
) -> MappingPlan:
    """Decide who learns of which range of the tensor of this name.

    ``cubes`` are those of a SIP, for ``Sight.SIP``; cubes that have a shard need not be among them.
    Raises RegistryError for ranges that overlap without being the same.

    >>> from tilewright.memory.address import PhysicalByte, VirtualByte
    >>> halves = [
    ...     ShardRange(
    ...         PeCoord(sip=0, cube=cube, pe=3),
    ...         RangeMapping(VirtualRange(VirtualByte(8 + 4 * cube), 4), PhysicalByte(100)),
    ...     )
    ...     for cube in range(2)
    ... ]
    >>> plan = plan_mapping("tensor a", halves)
    >>> [(message.target.cubes, len(message.mappings)) for message in plan.map_messages()]
    [((0, 1), 2)]
    """
    groups: dict[object, list[ShardRange]] = {}
    for shard in sorted(shards):
        groups.setdefault(sight_group(shard.home, sight), []).append(shard)
    steps = [
        step for group in groups.values() for step in _steps_of_group(name, group, sight, cubes)
    ]
    return MappingPlan(tuple(steps))


def sight_group(pe: PeCoord, sight: Sight) -> object:
    """Return what a PE has in common with all PEs whose shards it may see; None: with every PE."""
    match sight:
        case Sight.OWN:
            return pe
        case Sight.SIP:
            return pe.sip
        case Sight.ALL:
            return None
        case _:
            assert_never(sight)


def _steps_of_group(
    name: str, shards: Sequence[ShardRange], sight: Sight, cubes: Sequence[int]
) -> Iterator[MapMsg]:
    viewers = _Viewers(tuple(dict.fromkeys(shard.home for shard in shards)), cubes)
    told: dict[tuple[PeCoord, ...], list[tuple[MapTarget, PeCoord]]] = {}  # by homes of copies
    messages: dict[MapTarget, list[RangeMapping]] = {}
    for copies in _copies_by_range(name, shards):
        homes = tuple(copies)
        if homes not in told:
            told[homes] = list(viewers.targets(homes, sight))
        for target, home in told[homes]:
            messages.setdefault(target, []).append(copies[home])
    for target in sorted(messages, key=_order):
        yield MapMsg(target, tuple(sorted(messages[target])))


def _order(target: MapTarget) -> tuple[object, ...]:
    """SIP by SIP, and what goes to more PEs first."""
    return target.sip, target.pe is not None, -len(target.cubes), target.cubes, target.pe or 0


class _Viewers:
    """The PEs that have shards, and which copy of a range each of them sees."""

    def __init__(self, places: Sequence[PeCoord], cubes: Sequence[int]) -> None:
        self._cubes = cubes
        self._pes: dict[int, dict[int, list[PeCoord]]] = {}  # by SIP and cube
        for place in places:
            self._pes.setdefault(place.sip, {}).setdefault(place.cube, []).append(place)

    def targets(
        self, homes: Sequence[PeCoord], sight: Sight
    ) -> Iterator[tuple[MapTarget, PeCoord]]:
        """Who is told of which copy."""
        match sight:
            case Sight.OWN:
                return ((_alone(home), home) for home in homes)
            case Sight.SIP:
                return self._only_ones(homes)
            case Sight.ALL:
                return self._nearest_ones(homes)
            case _:
                assert_never(sight)

    def _only_ones(self, homes: Sequence[PeCoord]) -> Iterator[tuple[MapTarget, PeCoord]]:
        cubes = [home.cube for home in homes]
        for home in homes:
            if cubes.count(home.cube) > 1:
                yield _alone(home), home
            elif len(homes) > 1:
                yield MapTarget(home.sip, (home.cube,)), home
            else:
                yield self._cubes_of_sip(home.sip), home

    def _cubes_of_sip(self, sip: int) -> MapTarget:
        """Return all cubes of a SIP, or the one of a tensor that has a single shard there."""
        by_cube = self._pes[sip]
        is_split = sum(map(len, by_cube.values())) > 1
        return MapTarget(sip, tuple(sorted({*by_cube, *(self._cubes if is_split else ())})))

    def _nearest_ones(self, homes: Sequence[PeCoord]) -> Iterator[tuple[MapTarget, PeCoord]]:
        if len(homes) == 1:
            for sip, by_cube in self._pes.items():
                yield MapTarget(sip, tuple(by_cube)), homes[0]
            return
        owners = frozenset(homes)
        for sip, by_cube in self._pes.items():
            cubes_told: dict[tuple[int | None, PeCoord], list[int]] = {}
            for cube, pes in by_cube.items():
                seen = {pe.pe: pe if pe in owners else _nearest(pe, homes) for pe in pes}
                is_one = len(set(seen.values())) == 1
                for pe, home in seen.items():
                    cubes = cubes_told.setdefault((None if is_one else pe, home), [])
                    if cube not in cubes[-1:]:
                        cubes.append(cube)
            for (number, home), cubes in cubes_told.items():
                yield MapTarget(sip, tuple(cubes), number), home


def _alone(home: PeCoord) -> MapTarget:
    return MapTarget(home.sip, (home.cube,), home.pe)


def _nearest(viewer: PeCoord, homes: Sequence[PeCoord]) -> PeCoord:
    def distance(home: PeCoord) -> tuple[bool, bool, bool, PeCoord]:
        same_sip, same_cube = home.sip == viewer.sip, home.cube == viewer.cube
        return not same_sip, not same_cube, home.pe != viewer.pe, home

    return min(homes, key=distance)


def _copies_by_range(
    name: str, shards: Sequence[ShardRange]
) -> Iterator[Mapping[PeCoord, RangeMapping]]:
    """The copies of each range by their homes, in the order of ranges.

    Ranges that overlap without being the same are refused.
    """
    copies: dict[VirtualRange, dict[PeCoord, RangeMapping]] = {}
    for shard in shards:
        of_range = copies.setdefault(shard.mapping.virtual, {})
        if shard.home in of_range:
            found = f"two copies of {shard.mapping.virtual} in {place_name(shard.home)}"
            raise RegistryError(name, found, "one", "place it once")
        of_range[shard.home] = shard.mapping
    ranges = sorted(copies)
    both = RunIndex((each, each) for each in ranges).overlap()
    if both is not None:
        before, after = (VirtualRange(each.first, each.num_bytes) for each in both)
        found = f"shards of {before} and {after}"
        fix = "cut shards at the same bytes"
        raise RegistryError(name, found, "ranges that are apart, or copies of one", fix)
    return (copies[virtual] for virtual in ranges)
