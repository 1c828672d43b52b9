"""How work is cut into programs. Values do not depend on it, except for rounding of sums."""

from dataclasses import dataclass, fields

from tilewright.attention.codegen.body import padded
from tilewright.attention.codegen.stored import ROUNDINGS
from tilewright.attention.codegen.target import Target
from tilewright.attention.graph import DType, Geometry
from tilewright.errors import CodegenError

__all__ = ("Tiling",)

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
        """Tiles of which some fit into the registers at once, so that loads run ahead of work."""
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
        """Pages of a tile whose widest value has so many elements a page: at least one."""
        pages = self.page_tile
        while pages > 1 and pages * elements_per_page > self.max_elements:
            pages //= 2
        return pages


def _bits_on_chip(dtype: DType) -> int:
    """Return the bits of an element in a tile: one of a byte lies there in bfloat16, too."""
    return dtype.bits + (DType.BFLOAT16.bits if dtype in ROUNDINGS else 0)


def _nearest(space: int, each: int) -> int:
    """About as many as fit: a power of two.

    >>> _nearest(64, 1), _nearest(57, 1), _nearest(40, 1), _nearest(1, 8)
    (64, 64, 32, 1)
    """
    return padded(max(3 * space // (4 * each), 1))
