"""The virtual address space that the tensors of one context share."""

from tilewright.machine.build import Machine
from tilewright.memory.address import VirtualByte
from tilewright.memory.allocator import Allocator, AllocatorStatistics

BASE = 0x1_0000_0000  # below it, no number that a program counts with is an address
SPACE_BYTES = 64 * 2**30
END = 2**47  # the sanitizer tags addresses from bit 48 on, and sums may go below a tensor


def virtual_capacity_bytes(machine: Machine) -> int:
    """Return how many virtual bytes a context on this machine has.

    They are twice the bytes of all HBM, since a page that nobody gets lies behind each tensor, and
    at least 64 GiB, since a small tensor takes whole pages.
    """
    hbm_bytes = machine.grid.num_cubes * machine.spec.cube.hbm.capacity_bytes
    return min(max(2 * hbm_bytes, SPACE_BYTES), END - BASE)


class VirtualSpace:
    """Gives out whole pages, the lowest that are free, with a page that nobody gets behind them.

    So an access that leaves a tensor by less than a page is an error, and no other tensor's byte.

    >>> space = VirtualSpace(page_bytes=65_536)
    >>> hex(space.allocate(100_000, requester="tensor a"))
    '0x100000000'
    >>> hex(space.allocate(1, requester="tensor b"))
    '0x100030000'
    """

    def __init__(
        self, *, page_bytes: int, base: int = BASE, capacity_bytes: int = SPACE_BYTES
    ) -> None:
        self.page_bytes = page_bytes
        self._allocator = Allocator(
            "virtual space", capacity_bytes, start=base, alignment=page_bytes
        )

    @property
    def statistics(self) -> AllocatorStatistics:
        return self._allocator.statistics

    def allocate(self, num_bytes: int, *, requester: str) -> VirtualByte:
        """The start of pages for this many bytes."""
        return VirtualByte(self._allocator.allocate(self._rounded(num_bytes), requester=requester))

    def free(self, address: VirtualByte, num_bytes: int) -> None:
        """Give back the pages of what was asked for."""
        self._allocator.free(address, self._rounded(num_bytes))

    def _rounded(self, num_bytes: int) -> int:
        """With the page behind them."""
        return (-(-num_bytes // self.page_bytes) + 1) * self.page_bytes
