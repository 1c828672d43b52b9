"""Address translation of a PE: what it costs to look into its page table."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tilewright.engine.core import NO_WALK
from tilewright.machine.spec import MmuSpec
from tilewright.memory import (
    PageTable,
    PhysicalRun,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.page_table import Shared


class Walker(Protocol):
    """Who looks pages up: a stream of commands, numbered from 1 in the order of their issue."""

    def has_walked(self, command: int) -> bool:
        """Whether the walk of a command of the stream has ended by now."""
        ...


class Walk(NamedTuple):
    """Of a page table, by a command."""

    walker: Walker
    command: int


@dataclass(eq=False, slots=True)
class MmuState:
    """Plain state. The TLB keeps pages, least recently used first, each with the walks for it that
    may be under way: none as soon as one of them is known to have ended.
    """

    tlb: OrderedDict[VirtualPage, tuple[Walk, ...]] = field(default_factory=OrderedDict)
    hits: int = 0
    walks: int = 0


@dataclass(frozen=True, slots=True)
class Mmu:
    """A page that the TLB keeps is known ``hit_ps`` after the issue of the command that asks.

    Else it is known ``walk_ps`` after that, and kept from then on; when the TLB is full the least
    recently used page goes. Walks run beside each other and beside hits, so nothing queues here.
    Who finds a page that its own stream has a walk under way for waits for that walk; where it is
    another stream's, it walks too (ADR 0008). A byte that is not in the table is an error and
    changes nothing (ADR 0019).
    """

    name: str  # a path, "sip0.cube3.pe5.mmu"
    spec: MmuSpec
    table: PageTable
    state: MmuState = field(default_factory=MmuState)
    pe: str = field(init=False)  # whose it is, for errors

    def __post_init__(self) -> None:
        object.__setattr__(self, "pe", self.name.rpartition(".")[0])

    def reach(
        self, address: VirtualByte, num_bytes: int, by: Walk
    ) -> tuple[list[PhysicalRun], int]:
        """Where neighbouring bytes are, in as few runs as there are, for a command that asks.

        And the last command of its stream whose walk it waits for: itself, if it has to walk; else
        an earlier one, or ``NO_WALK``. Pages are looked up beside each other.
        """
        runs = self.table.runs(address, num_bytes, self.pe)
        return runs, self._look_up_all(address, num_bytes, by)

    def reach_segments(
        self, segments: range, segment_bytes: int, by: Walk
    ) -> tuple[list[PhysicalRun], int]:
        """As ``reach``, of segments at most a page apart with bytes between them that nobody needs.

        See ``PageTable.strided_runs``.
        """
        runs = self.table.strided_runs(segments, segment_bytes, self.pe)
        num_bytes = segments[-1] + segment_bytes - segments[0]
        return runs, self._look_up_all(VirtualByte(segments[0]), num_bytes, by)

    def _look_up_all(self, address: VirtualByte, num_bytes: int, by: Walk) -> int:
        page_bytes = self.table.page_bytes
        first, last = address // page_bytes, (address + num_bytes - 1) // page_bytes
        return max([self.look_up(VirtualPage(page), *by) for page in range(first, last + 1)])

    def look_up(self, page: VirtualPage, walker: Walker, command: int) -> int:
        """As ``reach``, of one page that is in the table; from now on the TLB keeps it."""
        state = self.state
        walks = state.tlb.get(page)
        if walks is not None:
            state.tlb.move_to_end(page)
            for walk in walks:
                if walk.walker is walker:
                    state.hits += 1
                    return walk.command
            if not walks or any(walk.walker.has_walked(walk.command) for walk in walks):
                state.tlb[page] = ()
                state.hits += 1
                return NO_WALK
        state.walks += 1
        state.tlb[page] = (*(walks or ()), Walk(walker, command))
        if len(state.tlb) > self.spec.tlb_entries:
            state.tlb.popitem(last=False)
        return command

    def flush(self) -> None:
        """Forget what the TLB keeps, and the walks that are under way; the page table stays."""
        self.state.tlb.clear()

    def unmap(self, ranges: Sequence[VirtualRange], shared: Shared | None = None) -> None:
        """Take ranges out of table and TLB as they were mapped; all, or none if one is missing."""
        self.table.unmap(ranges, shared)
        tlb = self.state.tlb
        for page in [page for page in tlb if not self.table.has_page(page)]:
            del tlb[page]
