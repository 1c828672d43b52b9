"""DMA channels: who may have how many packets under way.

A PE has read and write channels, the host one of each per SIP. A channel sends its accesses in the
order of their tasks, packet after packet, and has at most ``in_flight_bytes`` under way, counted in
whole packets from setting out until the answer is back.
"""

from dataclasses import dataclass
from enum import Enum

from tilewright.engine import Engine
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord

__all__ = ("Access", "Channel", "Gates", "window_packets")


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


class Gates:
    """The engine's gate of every channel, made at first use: a gate's number decides nothing."""

    def __init__(self, machine: Machine, engine: Engine) -> None:
        self._machine = machine
        self._engine = engine
        self._numbers: dict[Channel, int] = {}

    def number(self, channel: Channel) -> int:
        if channel not in self._numbers:
            packets = window_packets(self._machine, channel)
            self._numbers[channel] = self._engine.add_gate(packets)
        return self._numbers[channel]


def window_packets(machine: Machine, channel: Channel) -> int:
    """Packets that a channel may have under way."""
    spec = machine.spec
    is_host = isinstance(channel.owner, SipCoord)
    in_flight = spec.host.in_flight_bytes if is_host else spec.pe.dma.in_flight_bytes
    return max(1, in_flight // spec.packet_bytes)
