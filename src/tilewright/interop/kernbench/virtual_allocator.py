"""Virtual addresses by hand: ``kernbench.policy.address.va_allocator``."""

from tilewright.errors import SpecError
from tilewright.memory.allocator import Allocator, AllocatorStatistics

__all__ = ("VirtualAllocator",)


class VirtualAllocator:
    """Gives out whole pages of a virtual range, the lowest that fit; every free is checked.

    >>> allocator = VirtualAllocator(0x1_0000_0000, 64 << 30, 4096)
    >>> first, second = allocator.alloc(5000), allocator.alloc(1)
    >>> hex(first), hex(second)
    ('0x100000000', '0x100002000')
    >>> allocator.free(first, 5000)
    """

    def __init__(self, va_base: int, va_size: int, page_size: int) -> None:
        self.va_base, self.va_size, self.page_size = va_base, va_size, page_size
        for name, low in (("va_base", 0), ("va_size", 1), ("page_size", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < low:
                where, expected = f"VirtualAllocator {name}", f"an int of at least {low}"
                raise SpecError(where, repr(value), expected, "correct it")
        for name in ("va_base", "va_size"):
            value = getattr(self, name)
            if value % page_size:
                expected = f"whole pages of {page_size} bytes"
                raise SpecError(f"VirtualAllocator {name}", hex(value), expected, "align it")
        self._space = Allocator("virtual range", va_size, start=va_base, alignment=page_size)

    @property
    def statistics(self) -> AllocatorStatistics:
        """Bytes in use, the peak, and the holes."""
        return self._space.statistics

    def alloc(self, nbytes: int, name: str = "alloc") -> int:
        """Return the start of pages for so many bytes; an OutOfMemoryError names ``name``."""
        if type(nbytes) is int and nbytes > 0:
            nbytes = self._rounded(nbytes)
        return self._space.allocate(nbytes, requester=name)

    def free(self, va: int, nbytes: int) -> None:
        """Give back the pages of what was asked for; anything else is an AllocationError."""
        self._space.free(va, self._rounded(nbytes))

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.page_size) * self.page_size
