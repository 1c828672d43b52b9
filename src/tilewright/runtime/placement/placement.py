"""Where the elements of a tensor lie: which PE has which of them, and where in the virtual range.

The *parts* of a tensor are the different boxes of indices that its policy makes. They lie one after
the other in the virtual range, the elements of each packed in row-major order from a whole byte on.
A *shard* is what one PE has: a part, or blocks of its bytes where the policy interleaves. Replicas
are shards at the same place. No simulator and no memory is touched here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tilewright.errors import InternalError, PlacementError
from tilewright.language.dtype import DType
from tilewright.machine.coords import Grid, PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.runs import RunIndex, extents_of, is_aligned, num_bytes_of, shifted
from tilewright.runtime.placement.policy import (
    Box,
    DPPolicy,
    Interleave,
    Level,
    Region,
    Split,
    box_num_bytes,
    divide,
    strides_of,
)
from tilewright.runtime.placement.text import placement_text

MIN_AXES = 2  # row_wise and column_wise look at a tensor as a matrix, at least


class Targets(NamedTuple):
    """What a tensor may be placed on: these SIPs, of each these cubes, of each these PEs."""

    sips: tuple[int, ...]
    cubes: tuple[int, ...]
    pes: tuple[int, ...]

    @classmethod
    def of_grid(cls, grid: Grid, sips: tuple[int, ...] | None = None) -> "Targets":
        """All of a machine, or all of some of its SIPs."""
        all_sips = tuple(range(grid.num_sips))
        cubes, pes = range(grid.num_cubes_per_sip), range(grid.num_pes_per_cube)
        return cls(all_sips if sips is None else sips, tuple(cubes), tuple(pes))


@dataclass(frozen=True, slots=True)
class Part:
    """A box of a tensor, and where its packed elements lie in the virtual range."""

    box: Box
    offset: int
    num_bytes: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.box))

    @property
    def span(self) -> range:
        return range(self.offset, self.offset + self.num_bytes)


@dataclass(frozen=True, slots=True)
class Shard:
    """What one PE has of a tensor: ranges of bytes, in order, all in one part."""

    home: PeCoord
    part: Part
    ranges: Sequence[range]  # of the virtual range; of a large tensor ``Runs``

    @property
    def box(self) -> Box:
        return self.part.box

    @property
    def offset(self) -> int:
        """Of its first byte. Two shards with one offset are replicas."""
        return self.ranges[0].start

    @property
    def num_bytes(self) -> int:
        return num_bytes_of(self.ranges)

    @property
    def is_whole(self) -> bool:
        """Whether it is a box, not blocks of bytes of one."""
        return self.num_bytes == self.part.num_bytes


@dataclass(frozen=True)
class Placement:
    """The shards of a tensor, in the order of their PEs; a PE without elements has none."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    policy: DPPolicy
    page_bytes: int
    parts: tuple[Part, ...] = field(repr=False)
    shards: tuple[Shard, ...] = field(repr=False)

    @property
    def where(self) -> str:
        """How errors call the tensor."""
        return f"tensor {self.name!r}"

    @property
    def memory(self) -> MemoryKind:
        """The kind of memory that all shards are in."""
        return MemoryKind(self.policy.memory)

    def memory_of(self, pe: PeCoord) -> MemoryPlace:
        """Return the memory that a PE's shard is in."""
        return MemoryPlace.of(self.memory, pe)

    @property
    def num_bytes(self) -> int:
        """Of the virtual range."""
        return self.parts[-1].span.stop if self.parts else 0

    @property
    def homes(self) -> tuple[PeCoord, ...]:
        return tuple(shard.home for shard in self.shards)

    @cached_property
    def is_row_major(self) -> bool:
        """Whether the virtual range is the row-major tensor, byte for byte."""
        strides = strides_of(self.shape)
        # a box with gaps would be filled by parts that lie behind it, yet begin before its end
        return all(
            sum(extent.start * stride for extent, stride in zip(part.box, strides, strict=True))
            * self.dtype.bits
            == part.offset * 8
            for part in self.parts
        )

    @cached_property
    def is_global(self) -> bool:
        """Whether shards are page-aligned ranges of the row-major whole: then PEs see all of it."""
        return self.is_row_major and all(
            is_aligned(extents_of(shard.ranges), self.page_bytes, self.num_bytes)
            for shard in self.shards
        )

    @cached_property
    def owners(self) -> tuple[Shard, ...]:
        """One copy of every byte: of replicas the shard of the lowest PE, in the order of offsets.

        Together they are the whole tensor, each element once.
        """
        first: dict[int, Shard] = {}
        for shard in self.shards:
            first.setdefault(shard.offset, shard)
        return tuple(first[offset] for offset in sorted(first))

    @cached_property
    def _owned_ranges(self) -> RunIndex[Shard]:
        """The ranges of the owners: they cover the virtual range without a gap."""
        return RunIndex(
            (extent, shard) for shard in self.owners for extent in extents_of(shard.ranges)
        )

    def owner_of(self, offset: int) -> PeCoord:
        """The PE of a byte of the virtual range; of replicas the lowest."""
        if not 0 <= offset < self.num_bytes:
            expected = f"an offset below {self.num_bytes}"
            raise PlacementError(self.where, f"byte {offset}", expected, "correct the offset")
        hit = self._owned_ranges.at(offset)
        if hit is None:
            raise InternalError(self.where, f"byte {offset} of nobody", "an owner", "report it")
        return hit.items[0].home

    @cached_property
    def _shard_of(self) -> Mapping[PeCoord, Shard]:
        return {shard.home: shard for shard in self.shards}

    def has_shard(self, pe: PeCoord) -> bool:
        return pe in self._shard_of

    def shard_of(self, pe: PeCoord) -> Shard:
        """A PE without one is refused."""
        shard = self._shard_of.get(pe)
        if shard is None:
            found = f"{place_name(pe)}, which has no shard"
            fix = "ask a PE of its shards; print its describe()"
            raise PlacementError(self.where, found, "a PE that has a part of it", fix)
        return shard

    def local_shape(self, pe: PeCoord) -> tuple[int, ...]:
        """Of the PE's shard; blocks of bytes have none."""
        shard = self.shard_of(pe)
        if not shard.is_whole:
            found = f"the shape of interleaved blocks in {place_name(pe)}"
            raise PlacementError(self.where, found, "a shard that is a box", "split by an axis")
        return shard.part.shape

    def local_size(self, pe: PeCoord, axis: int) -> int:
        """How many indices of an axis the PE has."""
        shape = self.local_shape(pe)
        _check_axis(self.where, axis, len(shape))
        return shape[axis]

    def local_offset(self, pe: PeCoord) -> int:
        """Where the PE's shard begins in the virtual range."""
        return self.shard_of(pe).offset

    def sip_offset(self, sip: int) -> int:
        """Where what a SIP has begins in the virtual range."""
        offsets = [shard.offset for shard in self.shards if shard.home.sip == sip]
        if not offsets:
            found = f"sip{sip}, which has no shard"
            raise PlacementError(self.where, found, "a SIP that has a part of it", "place it there")
        return min(offsets)

    def describe(self) -> str:
        """A table of all shards, replicas in one line."""
        homes: dict[int, list[PeCoord]] = {}
        for shard in self.shards:
            homes.setdefault(shard.offset, []).append(shard.home)
        lines = [
            (homes[shard.offset], shard.box, shard.is_whole, shard.ranges) for shard in self.owners
        ]
        kind = "global" if self.is_global else "not global"
        shape = "x".join(map(str, self.shape)) or "a scalar"
        title = f"{self.where}: {self.dtype} {shape}, {self.num_bytes} bytes, {kind}"
        return placement_text(title, lines)


def place(
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    policy: DPPolicy,
    targets: Targets,
    page_bytes: int,
) -> Placement:
    """Divide a tensor as its policy says. What cannot be is refused before anything is sent.

    >>> from tilewright.language.dtype import float16
    >>> targets = Targets(sips=(0,), cubes=(0, 1), pes=(0, 1))
    >>> policy = DPPolicy(cube="row_wise", pe="column_wise")
    >>> print(place("a", (5, 4), float16, policy, targets, page_bytes=4096).describe())
    tensor 'a': fp16 5x4, 40 bytes, not global
    PEs             indices     offset  bytes
    sip0.cube0.pe0  [0:3, 0:2]       0     12
    sip0.cube0.pe1  [0:3, 2:4]      12     12
    sip0.cube1.pe0  [3:5, 0:2]      24      8
    sip0.cube1.pe1  [3:5, 2:4]      32      8
    """
    where = f"tensor {name!r}"
    if any(type(size) is not int or size < 0 for size in shape):
        found, expected = f"the shape {shape}", "ints that are not negative"
        raise PlacementError(where, found, expected, "correct the shape")
    for level in policy.levels:
        _check_layout(where, level, len(shape), page_bytes)
    parts: dict[Box, Part] = {}
    shards = []
    end = 0
    for home, region in _regions(where, shape, dtype, policy, targets):
        runs = region.byte_runs(dtype.bits)
        if not runs:
            continue
        box = region.box[len(region.box) - len(shape) :]
        if box not in parts:
            parts[box] = Part(box, end, box_num_bytes(box, dtype.bits))
            end = parts[box].span.stop
        shards.append(Shard(home, parts[box], shifted(runs, parts[box].offset)))
    return Placement(name, shape, dtype, policy, page_bytes, tuple(parts.values()), tuple(shards))


def _regions(
    where: str, shape: tuple[int, ...], dtype: DType, policy: DPPolicy, targets: Targets
) -> Iterator[tuple[PeCoord, Region]]:
    """What each PE gets, in the order of PEs, by indices of at least two axes."""
    sizes = (1,) * (MIN_AXES - len(shape)) + shape
    found: list[tuple[tuple[int, ...], Region]] = [((), Region(tuple(map(range, sizes))))]
    for level, there in zip(policy.levels, targets, strict=True):
        layout, units = level.layout, _units(where, level, there)
        if isinstance(layout, Split):  # of the tensor's axes, which are the last of the box
            layout = Split(layout.axis % len(shape) - len(shape))
        found = [
            ((*place, unit), part)
            for place, region in found
            for unit, part in zip(
                units, divide(region, layout, len(units), bits=dtype.bits), strict=True
            )
        ]
    for place, region in found:
        yield PeCoord(*place), region


def _units(where: str, level: Level, there: tuple[int, ...]) -> tuple[int, ...]:
    count = len(there) if level.num_units is None else level.num_units
    if not 1 <= count <= len(there):
        found = f"num_{level.name}s={count}"
        expected = f"between 1 and the {len(there)} that can be used"
        fix = "lower it, or take a larger machine"
        raise PlacementError(f"{where}, DPPolicy", found, expected, fix)
    return there[:count]


def _check_layout(where: str, level: Level, rank: int, page_bytes: int) -> None:
    where = f"{where}, {level.where}"
    match level.layout:
        case Split(axis=axis):
            _check_axis(where, axis, rank)
        case Interleave(num_bytes=num_bytes) if num_bytes % page_bytes:
            found, expected = f"blocks of {num_bytes} bytes", f"a multiple of {page_bytes}, a page"
            fix = f"write Interleave({-(-num_bytes // page_bytes) * page_bytes})"
            raise PlacementError(where, found, expected, fix)


def _check_axis(where: str, axis: int, rank: int) -> None:
    """Whether a tensor of this rank has the axis."""
    if not -rank <= axis < rank:
        expected = f"one from {-rank} to {rank - 1}" if rank else "none, since a scalar has no axes"
        raise PlacementError(where, f"axis {axis}", expected, "name an axis of the tensor")
