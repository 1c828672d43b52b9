"""DMA channels: who may have how many packets under way.

A PE has ``read_channels`` and ``write_channels``, the host one of each per SIP. A channel sends its
accesses in the order of their tasks, packet after packet, and has at most ``in_flight_bytes`` under
way, counted in whole packets from setting out until the answer is back. Channels share the links
behind them, where packets meet as any others do.

Loads, stores and atomics of a PE are dealt to its channels in turn, reads and writes each for
themselves, in the order in which they are issued; all of one access goes through one channel.
Messages write and read through the first ones.
"""

from dataclasses import dataclass
from enum import Enum

from tilewright.errors import DeviceError
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import place_name


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
