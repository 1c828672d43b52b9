"""Programs of a grid: their ids, which of them a PE runs, and what messages call them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, overload

import numpy as np

from tilewright.engine.spec import Limits, limit_error
from tilewright.errors import KernelError
from tilewright.language.kernel import Kernel

MAX_GRID_AXES = 3


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


class ProgramTitle(NamedTuple):
    """What messages call a program, also when its PE has gone on to the next one."""

    ids: tuple[int, ...]
    kernel: str
    pe: str

    def __str__(self) -> str:
        return f"program {self.ids} of {self.kernel} on {self.pe}"


def dealt(grid: tuple[int, ...], num_pes: int) -> list[ProgramIds]:
    """The ids of all programs of a grid, dealt to PEs in turn; the first axis counts fastest.

    >>> [list(ids) for ids in dealt((3, 2), 2)]
    [[(0, 0), (2, 0), (1, 1)], [(1, 0), (0, 1), (2, 1)]]
    """
    return [ProgramIds(grid, range(turn, prod(grid), num_pes)) for turn in range(num_pes)]


def checked_grid(kernel: Kernel, grid: Any, limits: Limits) -> tuple[int, ...]:
    """Return the extents of a grid; refuse one of other values or of too many programs."""
    extents = tuple(grid) if isinstance(grid, list | tuple) else (grid,)
    is_grid = 1 <= len(extents) <= MAX_GRID_AXES and all(
        isinstance(extent, int | np.integer) and not isinstance(extent, bool) and extent >= 0
        for extent in extents
    )
    if not is_grid:
        expected = f"1 to {MAX_GRID_AXES} integers of at least 0"
        found = f"the grid {grid!r}"
        raise KernelError(f"kernel {kernel.name!r}", found, expected, "correct the grid")
    sizes = tuple(map(int, extents))
    if prod(sizes) > limits.programs:
        where, found = f"kernel {kernel.name!r}", f"a grid {sizes} of {prod(sizes)} programs"
        raise limit_error(where, found, "programs", limits.programs)
    return sizes
