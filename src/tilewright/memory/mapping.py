"""Which PEs learn where the pages of a tensor are: a frozen plan of messages, and its undoing.

A shard is a range of the tensor's virtual pages that lies in one PE's slice. A range that several
PEs of a SIP have is replicated, and every copy has the same virtual addresses:

- A range with one copy in the SIP goes to all PEs of every cube of the SIP that has a shard.
- Of a range with copies in several cubes, each cube's copy goes to all PEs of that cube.
- Of a range with several copies in one cube, each copy goes to the PE that has it and to no other:
  a PE without a copy does not see the range, rather than one of its neighbours' copies.

No SIP learns of another's shards. What goes to the same PEs goes in one message. A plan is undone
by the reverse: the same targets in the reverse order, with the ranges of each message.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from tilewright.errors import RegistryError
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.page_table import PageMapping, PageRange

__all__ = ("MapMsg", "MapTarget", "MappingPlan", "ShardPages", "UnmapMsg", "plan_mapping")


@dataclass(frozen=True, slots=True, order=True)
class ShardPages:
    """The pages of one shard, and the PE that has them in its slice."""

    home: PeCoord
    mapping: PageMapping


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
    mappings: tuple[PageMapping, ...]


@dataclass(frozen=True, slots=True)
class UnmapMsg:
    """Takes translations out."""

    target: MapTarget
    ranges: tuple[PageRange, ...]


@dataclass(frozen=True, slots=True)
class MappingPlan:
    """What to send before the first access to a tensor, and after the last."""

    steps: tuple[MapMsg, ...]

    def map_messages(self) -> tuple[MapMsg, ...]:
        return self.steps

    def unmap_messages(self) -> tuple[UnmapMsg, ...]:
        return tuple(
            UnmapMsg(step.target, tuple(mapping.pages for mapping in reversed(step.mappings)))
            for step in reversed(self.steps)
        )


def plan_mapping(name: str, shards: Iterable[ShardPages]) -> MappingPlan:
    """For the tensor of this name. Ranges that overlap without being the same are refused.

    >>> from tilewright.memory.address import PhysicalPage, VirtualPage
    >>> halves = [
    ...     ShardPages(
    ...         PeCoord(sip=0, cube=cube, pe=3),
    ...         PageMapping(PageRange(VirtualPage(8 + 4 * cube), 4), PhysicalPage(100)),
    ...     )
    ...     for cube in range(2)
    ... ]
    >>> plan = plan_mapping("tensor a", halves)
    >>> [(message.target.cubes, len(message.mappings)) for message in plan.map_messages()]
    [((0, 1), 2)]
    """
    by_sip: dict[int, list[ShardPages]] = {}
    for shard in sorted(shards):
        by_sip.setdefault(shard.home.sip, []).append(shard)
    steps = [step for sip in by_sip.values() for step in _steps_of_sip(name, sip)]
    return MappingPlan(tuple(steps))


def _steps_of_sip(name: str, shards: list[ShardPages]) -> Iterator[MapMsg]:
    sip = shards[0].home.sip
    cubes = tuple(dict.fromkeys(shard.home.cube for shard in shards))
    messages: dict[MapTarget, list[PageMapping]] = {MapTarget(sip, cubes): []}
    for copies in _copies_by_range(name, shards):
        in_cube: dict[int, list[ShardPages]] = {}
        for copy in copies:
            in_cube.setdefault(copy.home.cube, []).append(copy)
        for copy in copies:
            target = MapTarget(sip, cubes)
            if len(in_cube[copy.home.cube]) > 1:
                target = MapTarget(sip, (copy.home.cube,), copy.home.pe)
            elif len(in_cube) > 1:
                target = MapTarget(sip, (copy.home.cube,))
            messages.setdefault(target, []).append(copy.mapping)
    for target, mappings in messages.items():
        if mappings:
            yield MapMsg(target, tuple(sorted(mappings)))


def _copies_by_range(name: str, shards: list[ShardPages]) -> Iterator[list[ShardPages]]:
    """The shards of a SIP, together if they are copies of one range, in the order of ranges."""
    copies: dict[PageRange, list[ShardPages]] = {}
    for shard in shards:
        copies.setdefault(shard.mapping.pages, []).append(shard)
    ranges = sorted(copies)
    for before, after in pairwise(ranges):
        if after.first < before.end:
            found = f"shards of {before} and {after}"
            fix = "cut shards at the same pages"
            raise RegistryError(name, found, "ranges that are apart, or copies of one", fix)
    for pages in ranges:
        homes = [shard.home for shard in copies[pages]]
        for before_home, home in pairwise(homes):
            if before_home == home:
                found = f"two copies of {pages} in {place_name(home)}"
                raise RegistryError(name, found, "one", "place it once")
        yield copies[pages]
