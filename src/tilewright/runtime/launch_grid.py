"""The programs of a grid on PEs: in turn, by a function, or by who owns a tensor."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tilewright.errors import KernelError
from tilewright.executor.grid import ProgramIds, dealt
from tilewright.machine.coords import PeCoord
from tilewright.runtime.tensor import Tensor

__all__ = ("Grid", "On", "programs_of_grid")

Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]
On = Sequence[PeCoord] | Callable[..., PeCoord] | Tensor
"""PEs in turn; a function of a program's ids; the owners of equal fractions of a tensor."""

Programs = Mapping[PeCoord, Sequence[tuple[int, ...]]]


def programs_of_grid(
    where: str, grid: tuple[int, ...], pes: Sequence[PeCoord], on: On | None
) -> Programs:
    """The ids of programs by PE; ``pes`` are those that are dealt to in turn."""
    if isinstance(on, Tensor):
        return _by_owner(grid, on)
    if callable(on):
        return _by_function(where, grid, on)
    return dict(zip(pes, dealt(grid, len(pes)), strict=True))


def _all_ids(grid: tuple[int, ...]) -> ProgramIds:
    return ProgramIds(grid, range(prod(grid)))


def _by_owner(grid: tuple[int, ...], tensor: Tensor) -> Programs:
    """Program i of n runs where byte i/n of the tensor is."""
    placement = tensor.placement
    programs: dict[PeCoord, list[tuple[int, ...]]] = {}
    num_programs = prod(grid)
    for number, ids in enumerate(_all_ids(grid)):
        owner = placement.owner_of(number * placement.num_bytes // num_programs)
        programs.setdefault(owner, []).append(ids)
    return programs


def _by_function(where: str, grid: tuple[int, ...], on: Callable[..., PeCoord]) -> Programs:
    programs: dict[PeCoord, list[tuple[int, ...]]] = {}
    for ids in _all_ids(grid):
        pe = on(*ids)
        if not isinstance(pe, PeCoord):
            fix = "return PeCoord(sip, cube, pe)"
            raise KernelError(where, f"on{ids} = {pe!r}", "a PeCoord", fix)
        programs.setdefault(pe, []).append(ids)
    return programs
