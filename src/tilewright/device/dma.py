"""How a PE reaches memory: DMA channels, with so many packets under way, behind its MMU.

A PE has ``read_channels`` and ``write_channels``, the host one of each per SIP. A channel sends its
accesses in the order of their tasks, packet after packet, and has at most ``in_flight_bytes`` under
way, counted in whole packets from setting out until the answer is back. Channels share the links
behind them, where packets meet as any others do.

Loads, stores and atomics of a PE are dealt to its channels in turn, reads and writes each for
themselves, in the order in which they are issued; all of one access goes through one channel.
Messages write and read through the first ones.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from tilewright.engine.core import NO_WALK
from tilewright.errors import DeviceError
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import place_name
from tilewright.machine.spec import MmuSpec
from tilewright.memory import (
    PageTable,
    PhysicalRun,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.page_table import Shared


class Access(Enum):
    """What a channel does."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Channel:
    """One DMA channel of a PE, or of the host towards a SIP."""

    owner: PeCoord | SipCoord
    access: Access
    index: int = 0


class ChannelDeal:
    """Which channel the next access of a PE goes through.

    >>> deal = ChannelDeal(num_reads=2, num_writes=1)
    >>> [deal.take(Access.READ) for _ in range(3)], deal.take(Access.WRITE)
    ([0, 1, 0], 0)
    """

    __slots__ = ("_dealt", "num_of")

    def __init__(self, num_reads: int, num_writes: int) -> None:
        self.num_of = {Access.READ: num_reads, Access.WRITE: num_writes}
        self._dealt = {Access.READ: 0, Access.WRITE: 0}

    def take(self, access: Access) -> int:
        turn = self._dealt[access]
        self._dealt[access] = turn + 1
        return turn % self.num_of[access]


def num_channels(machine: Machine, owner: PeCoord | SipCoord, access: Access) -> int:
    """Channels that a PE has for reads or writes; towards a SIP the host has one of each."""
    if isinstance(owner, SipCoord):
        return 1
    dma = machine.spec.pe.dma
    return dma.read_channels if access is Access.READ else dma.write_channels


def window_packets(machine: Machine, channel: Channel) -> int:
    """Packets that a channel may have under way."""
    spec = machine.spec
    is_host = isinstance(channel.owner, SipCoord)
    in_flight = spec.host.in_flight_bytes if is_host else spec.pe.dma.in_flight_bytes
    return max(1, in_flight // spec.packet_bytes)


def check_channel(machine: Machine, channel: Channel) -> None:
    """Refuse a channel that its owner does not have."""
    count = num_channels(machine, channel.owner, channel.access)
    if not 0 <= channel.index < count:
        found = f"{channel.access.value} channel {channel.index} of {place_name(channel.owner)}"
        expected = f"one of its {count}, counted from 0"
        fix = f"name another channel, or raise pe.dma.{channel.access.value}_channels"
        raise DeviceError("DMA", found, expected, fix)


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
