"""Address translation of a PE: what it costs to look into its page table."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.errors import PageFaultError, UnitError
from tilewright.machine.spec import MmuSpec
from tilewright.memory import (
    PageMapping,
    PageRange,
    PageTable,
    PhysicalPage,
    PhysicalRun,
    VirtualByte,
    VirtualPage,
)
from tilewright.memory.page_table import Shared

__all__ = ("Mmu", "MmuState", "PhysicalPage", "Translation", "VirtualPage")


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
    table: PageTable
    state: MmuState = field(default_factory=MmuState)
    pe: str = field(init=False)  # whose it is, for errors

    def __post_init__(self) -> None:
        object.__setattr__(self, "pe", self.name.rpartition(".")[0])

    def translate(self, page: VirtualPage) -> Translation:
        """Where a page is, and what this access pays to know it."""
        place = self.table.get(page)
        if place is None:
            raise self._page_fault(page)
        is_hit = self._look_up(page)
        return Translation(place, self.spec.hit_ps if is_hit else self.spec.walk_ps, is_hit)

    def reach(self, address: VirtualByte, num_bytes: int) -> tuple[list[PhysicalRun], int]:
        """Where neighbouring bytes are, in as few runs as there are, and what that costs to know.

        Their pages are looked up beside each other, so an access pays for one walk if there is any.
        """
        runs = self.table.runs(address, num_bytes, self.pe)
        page_bytes = self.table.page_bytes
        first, last = address // page_bytes, (address + num_bytes - 1) // page_bytes
        walks = self.state.walks
        for page in range(first, last + 1):
            self._look_up(VirtualPage(page))
        is_hit = self.state.walks == walks
        return runs, self.spec.hit_ps if is_hit else self.spec.walk_ps

    def _look_up(self, page: VirtualPage) -> bool:
        """Whether the TLB keeps a page; from now on it does."""
        state = self.state
        if page in state.tlb:
            state.tlb.move_to_end(page)
            state.hits += 1
            return True
        state.tlb[page] = None
        state.walks += 1
        if len(state.tlb) > self.spec.tlb_entries:
            state.tlb.popitem(last=False)
        return False

    def pages_of(self, address: int, num_bytes: int) -> range:
        """The virtual pages that an access touches, lowest first."""
        if type(address) is not int or type(num_bytes) is not int or address < 0 or num_bytes < 1:
            found = f"an access to {num_bytes!r} bytes at {address!r}"
            expected = "ints: at least 1 byte at address 0 or above"
            raise UnitError(self.name, found, expected, "correct the access")
        page_bytes = self.spec.page_bytes
        return range(address // page_bytes, (address + num_bytes - 1) // page_bytes + 1)

    def map(self, mappings: Sequence[PageMapping], shared: Shared | None = None) -> None:
        """Add translations; all of them, or none if one of the pages has one already."""
        self.table.map(mappings, shared)

    def unmap(self, ranges: Sequence[PageRange], shared: Shared | None = None) -> None:
        """Take ranges out of table and TLB as they were mapped; all, or none if one is missing."""
        self.table.unmap(ranges, shared)
        tlb = self.state.tlb
        for page in [page for page in tlb if self.table.get(page) is None]:
            del tlb[page]

    def _page_fault(self, page: VirtualPage) -> PageFaultError:
        return PageFaultError(
            self.name,
            f"an access to {self._range_text(page)}, which is not mapped",
            "a mapped page",
            "map it before the access, or correct the address",
            address=page * self.spec.page_bytes,
            pe=self.pe,
        )

    def _range_text(self, page: VirtualPage) -> str:
        start = page * self.spec.page_bytes
        return f"virtual page {page} ({start:#x}..{start + self.spec.page_bytes - 1:#x})"
