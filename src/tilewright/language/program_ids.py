"""Which programs of a grid a PE runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

__all__ = ("ProgramIds",)


@dataclass(frozen=True, slots=True)
class ProgramIds(Sequence[tuple[int, ...]]):
    """The ids of some programs of a grid, by their numbers; the first axis counts fastest.

    An id is computed when it is asked for: a grid of millions of programs takes no space.

    >>> list(ProgramIds((3, 2), range(1, 6, 2)))
    [(1, 0), (0, 1), (2, 1)]
    """

    grid: tuple[int, ...]
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> "ProgramIds": ...
    def __getitem__(self, index: int | slice) -> "tuple[int, ...] | ProgramIds":
        if isinstance(index, slice):
            return ProgramIds(self.grid, self.numbers[index])
        ids = []
        number = self.numbers[index]
        for extent in self.grid:
            number, place = divmod(number, extent)
            ids.append(place)
        return tuple(ids)
