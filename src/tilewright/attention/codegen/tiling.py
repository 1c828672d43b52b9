"""How work is cut into programs. Values do not depend on it, except for rounding of sums."""

from dataclasses import dataclass, fields

from tilewright.errors import CodegenError

__all__ = ("Tiling",)


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

    def pages_for(self, elements_per_page: int) -> int:
        """Pages of a tile whose widest value has so many elements a page: at least one."""
        pages = self.page_tile
        while pages > 1 and pages * elements_per_page > self.max_elements:
            pages //= 2
        return pages
