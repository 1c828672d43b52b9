"""Address translation by hand: ``kernbench.policy.address.pe_mmu``.

The page tables of a machine's PEs change by messages (`MmuMapMsg`, `MmuUnmapMsg`); a table here is
a value that no machine knows of.
"""

from tilewright.memory.address import PhysicalByte, RangeMapping, VirtualByte, VirtualRange
from tilewright.memory.page_table import PageTable

__all__ = ("PeMmu",)

PAGE_BYTES = 4096  # where a topology has no pe_mmu.attrs.page_size


class PeMmu:
    """A page table of byte ranges. A miss is a PageFaultError, never a physical address.

    >>> mmu = PeMmu()
    >>> mmu.map(0x1_0000_0000, 0x2000, 100)
    >>> hex(mmu.translate(0x1_0000_0010))
    '0x2010'
    """

    def __init__(self, page_size: int = PAGE_BYTES, name: str = "PeMmu") -> None:
        self.page_size = page_size
        self._table = PageTable(name, page_size)

    def map(self, va: int, pa: int, size: int) -> None:
        """Add a range; a byte that is mapped already is a RegistryError."""
        virtual = VirtualRange(VirtualByte(va), size)
        self._table.map([RangeMapping(virtual, PhysicalByte(pa))])

    def unmap(self, va: int, size: int) -> None:
        """Take a range out as it was mapped; anything else is a RegistryError."""
        self._table.unmap([VirtualRange(VirtualByte(va), size)])

    def translate(self, va: int) -> int:
        """Return the physical address of a virtual byte, and let no simulated time pass."""
        ((physical, _),) = self._table.runs(VirtualByte(va), 1)
        return physical
