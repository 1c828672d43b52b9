"""What a compiled flow is: the text of its kernels, and what a launcher must know."""

from dataclasses import dataclass
from enum import StrEnum

from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import DType, Geometry

__all__ = ("Grid", "Kernel", "KernelFile", "Merge", "Scratch", "ScratchAxis")


class Grid(StrEnum):
    """What the programs of a kernel stand for, axis by axis."""

    NEW_PAGES = "new pages, KV heads"
    ROW_TILES = "rows, tiles of pages"
    ROW_COLUMNS = "rows, columns of scores"
    ROWS = "rows"
    ROW_PARTS = "rows, parts of the list"


class ScratchAxis(StrEnum):
    """The axes of scratch memory before its inner shape."""

    PAGES = "rows, pages"
    PARTS = "rows, parts"
    ROWS = "rows"


class Merge(StrEnum):
    """Through what the parts of a row's attention are joined."""

    MEMORY = "memory"
    IPCQ = "ipcq"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of the file. ``tile`` is the pages of a program under `Grid.ROW_TILES`."""

    name: str
    grid: Grid
    arguments: tuple[str, ...]
    tile: int = 1  # pages of a program, or columns of scores


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that lives for one step: an argument of that name, with this type."""

    name: str
    axis: ScratchAxis
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """``step`` runs in order for every decode step; ``completion`` when pages become complete."""

    flow: str
    geometry: Geometry
    tiling: Tiling
    text: str
    completion: Kernel | None
    step: tuple[Kernel, ...]
    scratch: tuple[Scratch, ...]
    merge: Merge
