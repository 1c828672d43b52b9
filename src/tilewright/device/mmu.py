"""Address translation of a PE: its page table, and the translations that it keeps at hand."""

from collections import OrderedDict
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NewType

from tilewright.errors import PageFaultError, RegistryError, UnitError
from tilewright.machine.spec import MmuSpec

__all__ = ("Mmu", "MmuState", "PhysicalPage", "Translation", "VirtualPage")

VirtualPage = NewType("VirtualPage", int)
PhysicalPage = NewType("PhysicalPage", int)


@dataclass(frozen=True, slots=True)
class Translation:
    """A page's place and what it cost to find it: nobody gets the one without the other."""

    page: PhysicalPage
    cost_ps: int
    is_hit: bool


@dataclass(eq=False, slots=True)
class MmuState:
    """Plain state. The TLB keeps which pages are at hand, least recently used first."""

    tlb: OrderedDict[VirtualPage, None] = field(default_factory=OrderedDict)
    hits: int = 0
    walks: int = 0


@dataclass(frozen=True, slots=True)
class Mmu:
    """A translation costs ``hit_ps`` if the TLB keeps it, else ``walk_ps``, for that access alone.

    Walks run beside each other and beside hits, so nothing queues here. A walked page is kept from
    then on; when the TLB is full the least recently used one goes. A page that is not in the table
    is an error and changes nothing.
    """

    name: str  # a path, "sip0.cube3.pe5.mmu"
    spec: MmuSpec
    table: MutableMapping[VirtualPage, PhysicalPage]
    state: MmuState = field(default_factory=MmuState)

    def translate(self, page: VirtualPage) -> Translation:
        """Where a page is, and what this access pays to know it."""
        if page not in self.table:
            raise self._page_fault(page)
        state = self.state
        is_hit = page in state.tlb
        if is_hit:
            state.tlb.move_to_end(page)
            state.hits += 1
        else:
            state.tlb[page] = None
            state.walks += 1
            if len(state.tlb) > self.spec.tlb_entries:
                state.tlb.popitem(last=False)
        cost_ps = self.spec.hit_ps if is_hit else self.spec.walk_ps
        return Translation(self.table[page], cost_ps, is_hit)

    def pages_of(self, address: int, num_bytes: int) -> range:
        """The virtual pages that an access touches, lowest first."""
        if type(address) is not int or type(num_bytes) is not int or address < 0 or num_bytes < 1:
            found = f"an access to {num_bytes!r} bytes at {address!r}"
            expected = "ints: at least 1 byte at address 0 or above"
            raise UnitError(self.name, found, expected, "correct the access")
        page_bytes = self.spec.page_bytes
        return range(address // page_bytes, (address + num_bytes - 1) // page_bytes + 1)

    def map(self, pages: Mapping[VirtualPage, PhysicalPage]) -> None:
        """Add translations; all of them, or none if one of the pages has one already."""
        for page in pages:
            if page in self.table:
                found = f"a map of {self._range_text(page)}, which is mapped"
                raise RegistryError(self.name, found, "a page that is free", "unmap it first")
        self.table.update(pages)

    def unmap(self, pages: Sequence[VirtualPage]) -> None:
        """Take translations out of table and TLB; all of them, or none if one is missing."""
        for page in pages:
            if page not in self.table:
                found = f"an unmap of {self._range_text(page)}, which is not mapped"
                raise RegistryError(
                    self.name, found, "a mapped page", "unmap what was mapped, once"
                )
        if len(set(pages)) != len(pages):
            found = f"an unmap that names a page twice: {list(pages)}"
            raise RegistryError(self.name, found, "each page once", "unmap what was mapped, once")
        for page in pages:
            del self.table[page]
            self.state.tlb.pop(page, None)

    def _page_fault(self, page: VirtualPage) -> PageFaultError:
        return PageFaultError(
            self.name,
            f"an access to {self._range_text(page)}, which is not mapped",
            "a mapped page",
            "map it before the access, or correct the address",
            address=page * self.spec.page_bytes,
            pe=self.name.rpartition(".")[0],
        )

    def _range_text(self, page: VirtualPage) -> str:
        start = page * self.spec.page_bytes
        return f"virtual page {page} ({start:#x}..{start + self.spec.page_bytes - 1:#x})"
