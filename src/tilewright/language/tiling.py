"""How a composite walks over its operands: tiles of the result, and in each of them tiles of k."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.errors import KernelTypeError


@dataclass(frozen=True, slots=True)
class Part:
    """A range of places on one axis."""

    start: int
    size: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Parts of each axis, in order; where a tile does not divide an axis, the last is smaller."""

    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depths: tuple[Part, ...]

    def outputs(self) -> Iterator[tuple[Part, Part]]:
        """Tiles of the result, row by row."""
        for row in self.rows:
            for column in self.columns:
                yield row, column

    @property
    def num_outputs(self) -> int:
        return len(self.rows) * len(self.columns)


def plan_tiles(extents: tuple[int, int, int], tile_shape: tuple[int, int, int]) -> Tiling:
    """Of a result of M x N with K products each, all three from 1 up.

    >>> tiling = plan_tiles((64, 80, 100), (64, 64, 64))
    >>> tiling.columns, tiling.num_outputs
    ((Part(start=0, size=64), Part(start=64, size=16)), 2)
    """
    axes = zip("MNK", extents, tile_shape, strict=True)
    rows, columns, depths = (_parts(name, extent, size) for name, extent, size in axes)
    return Tiling(rows, columns, depths)


def _parts(name: str, extent: int, size: int) -> tuple[Part, ...]:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        found = f"{size!r} as the {name} of a tile"
        raise KernelTypeError("tile_shape", found, "a whole number from 1 up", "correct it")
    return tuple(Part(start, min(size, extent - start)) for start in range(0, extent, size))


def parts_of_operand(shape: tuple[int, ...], place: tuple[Part, ...]) -> tuple[Part, ...]:
    """What of an operand meets a place of the result, if it is broadcast to the result.

    >>> parts_of_operand((1, 80), (Part(32, 32), Part(64, 16)))
    (Part(start=0, size=1), Part(start=64, size=16))
    """
    met = place[len(place) - len(shape) :]
    return tuple(
        Part(0, 1) if extent == 1 else part for extent, part in zip(shape, met, strict=True)
    )
