"""What kernels are made for: where they run, how large tiles are, which stages share a kernel."""

from dataclasses import dataclass, field, fields
from enum import StrEnum

from tilewright.attention.graph import DType, Geometry
from tilewright.errors import CodegenError


def padded(size: int) -> int:
    """Return the next power of two: what a block of Triton is long.

    >>> [padded(size) for size in (1, 3, 16)]
    [1, 4, 16]
    """
    return 1 << (size - 1).bit_length()


class Deal(StrEnum):
    """Which pages of a row a member has."""

    WHOLE = "whole"  # the one member has all
    DEALT = "dealt"  # page p belongs to member p mod members
    CONTIGUOUS = "contiguous"  # neighbouring pages, as many for each but the last


class Merge(StrEnum):
    """Through what the parts of a row are joined."""

    MEMORY = "memory"
    IPCQ = "ipcq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Workers that each have a memory of their own, and the rows that are dealt to them.

    A row is divided among ``members`` workers, each of which runs one program for it: it looks at
    all its pages, tile by tile. ``pages`` bounds the pages of a member; blocks that a kernel keeps
    for a whole row have that size.
    """

    rows: int
    pages: int
    members: int = 1
    deal: Deal = Deal.WHOLE
    workers: int = 256
    register_bytes: int = 512 * 1024
    on_chip_bytes: int = 12 * 1024 * 1024  # registers spill into it
    spill_bytes_per_us: int = 512_000
    memory_bytes_per_us: int = 218_000  # what a worker's own memory delivers
    launch_ps: int = 300_000  # dispatch of a kernel and its completion
    message_ps: int = 50_000  # from a member to another, if they have queues
    merges: frozenset[Merge] = field(default_factory=lambda: frozenset({Merge.MEMORY}))

    def __post_init__(self) -> None:
        numbers = [item.name for item in fields(self) if item.type is int]
        for name in [name for name in numbers if not name.endswith("_ps")]:
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise CodegenError(f"target.{name}", repr(number), "at least 1", "correct it")
        if (self.members == 1) != (self.deal is Deal.WHOLE):
            found = f"{self.members} members and pages {self.deal}"
            expected = "one member with the whole row, or several that share it"
            raise CodegenError("target", found, expected, "correct one of them")


_TILES_ON_CHIP = 4  # of summaries or of keys: larger ones wait for space in the registers
_ROW_BYTES = 32  # that a page of a row tile takes in registers: keys, marks, positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """Sizes are powers of two, as blocks of Triton are; ``part_pages`` may be any number.

    >>> Tiling().pages_for(4 * 128)
    16
    """

    page_tile: int = 16  # most pages of a program that computes values per page
    max_elements: int = 32_768  # of the widest value of such a program
    row_tile: int = 1024  # pages that a row kernel looks at together
    attend_tokens: int = 64  # tokens that attention looks at together
    part_pages: int = 64  # listed pages of one program of attention

    def __post_init__(self) -> None:
        for item in fields(self):
            size = getattr(self, item.name)
            is_size = isinstance(size, int) and not isinstance(size, bool) and size > 0
            if not is_size or (item.name != "part_pages" and size & (size - 1)):
                expected = "a whole number" if item.name == "part_pages" else "a power of two"
                raise CodegenError(f"tiling.{item.name}", repr(size), expected, "change it")

    @staticmethod
    def for_target(sizes: Geometry, target: Target) -> "Tiling":
        """Choose tiles of which some fit into the registers, so that loads run ahead of work."""
        tile_bytes = max(target.register_bytes // _TILES_ON_CHIP, 1)
        token_bytes = max(sizes.key_dim, sizes.value_dim) * _bits_on_chip(sizes.kv_dtype) // 8
        return Tiling(
            page_tile=min(1024, padded(target.pages)),
            max_elements=_nearest(8 * tile_bytes, _bits_on_chip(sizes.field_dtype)),
            row_tile=min(padded(target.pages), _nearest(target.register_bytes, _ROW_BYTES)),
            attend_tokens=_nearest(tile_bytes, token_bytes),
            part_pages=target.pages,
        )

    def pages_for(self, elements_per_page: int) -> int:
        """Return the pages of a tile whose widest value has so many elements a page, at least 1."""
        pages = self.page_tile
        while pages > 1 and pages * elements_per_page > self.max_elements:
            pages //= 2
        return pages


def _bits_on_chip(dtype: DType) -> int:
    """Return the bits of an element in a tile: one of a byte lies there in bfloat16, too."""
    return dtype.bits + (DType.BFLOAT16.bits if dtype.is_float and dtype.bits == 8 else 0)


def _nearest(space: int, each: int) -> int:
    """Return about as many as fit: a power of two.

    >>> _nearest(64, 1), _nearest(57, 1), _nearest(40, 1), _nearest(1, 8)
    (64, 64, 32, 1)
    """
    return padded(max(3 * space // (4 * each), 1))


class Fusion(StrEnum):
    """Neighbouring stages in one kernel."""

    SCORE_SELECT = "scoring and selection"
    SELECT_LIST = "selection and listing"
    LIST_ATTEND = "listing and attention"


class Selection(StrEnum):
    """How the best pages of a row are found."""

    BLOCK = "selection of a row on the chip"  # all scores are one block, which is sorted
    SEGMENTS = "selection in two levels"  # of each segment the best, then the best of those
    DIGITS = "selection by digits"  # the last score that is in, digit by digit from memory


@dataclass(frozen=True, slots=True)
class Decision:
    """Of one fusion, or of one way to select: whether it is taken, and why.

    ``num_bytes`` are what a row moves between the stages that are decided about if it is taken,
    ``other_bytes`` if it is not; ``saved_ps`` is what taking it saves, launches included.
    """

    choice: Fusion | Selection
    is_accepted: bool
    reason: str
    num_bytes: int = 0
    other_bytes: int = 0
    saved_ps: int = 0

    @property
    def saved_bytes(self) -> int:
        return self.other_bytes - self.num_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a file of kernels is made of; the switches are there to see what each is worth."""

    fusions: frozenset[Fusion] = frozenset()
    selection: Selection | None = None  # None: what costs least
    has_dots: bool = True  # products with queries go to the matrix unit
    hoists: bool = True  # work on the query alone is ahead of the loop over pages
    reads_ahead: bool = True  # block numbers are loaded before the tile that needs them
