"""Which memory: its kind, and whose it is."""

from enum import StrEnum
from typing import NamedTuple

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name


class MemoryKind(StrEnum):
    """The memories that a program can address."""

    HBM = "hbm"  # the slice of a PE
    SRAM = "sram"  # of a cube
    TCM = "tcm"  # of a PE


class MemoryPlace(NamedTuple):
    """One memory. An SRAM goes by the first PE of its cube.

    >>> str(MemoryPlace.of(MemoryKind.SRAM, PeCoord(0, 3, 5)))
    'sip0.cube3.sram'
    """

    kind: MemoryKind
    pe: PeCoord

    @classmethod
    def of(cls, kind: MemoryKind, pe: PeCoord) -> "MemoryPlace":
        """The memory of this kind that a PE has, or its cube."""
        return cls(kind, PeCoord(pe.sip, pe.cube, 0) if kind is MemoryKind.SRAM else pe)

    def __str__(self) -> str:
        where = self.pe.cube_coord if self.kind is MemoryKind.SRAM else self.pe
        return f"{place_name(where)}.{self.kind.value}"
