"""Listens to links of the user's: only they know how long a packet travels behind them."""

from dataclasses import dataclass, field

from tilewright.device.block import PacketBlock
from tilewright.engine import PacketView
from tilewright.engine.core import OWNER_SHIFT

Heard = dict[int, tuple[int, int]]
"""What a block returned, hold and latency, by packet."""


@dataclass(frozen=True, slots=True)
class LinkWatch:
    """Keeps what the user's links say about the packets of some owners; it changes nothing."""

    owners: range
    heard: dict[int, Heard] = field(default_factory=dict)  # by link

    def around(self, link_id: int, block: PacketBlock) -> PacketBlock:
        return _Watched(block, self.owners, self.heard.setdefault(link_id, {}))

    def latencies_ps(self, link_id: int) -> dict[int, int]:
        """By packet; empty for a link of the package."""
        heard = self.heard.get(link_id, {})
        return {packet: latency_ps for packet, (_, latency_ps) in heard.items()}


@dataclass(frozen=True, slots=True)
class _Watched:
    block: PacketBlock
    owners: range
    heard: Heard

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        answer = self.block.service(packet, now_ps)  # nonsense is for the engine to refuse
        if packet.packet_id >> OWNER_SHIFT in self.owners:
            self.heard[packet.packet_id] = answer
        return answer
