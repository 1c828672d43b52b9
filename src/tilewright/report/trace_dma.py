"""What DMA channels do, command by command: from the first packet out to the last one back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

__all__ = ("DmaSpan", "DmaSpans", "DmaWay")


class DmaWay(Enum):
    """Which channel a command uses."""

    READ = "dma read"
    WRITE = "dma write"
    SEND = "dma send"


class DmaSpan(NamedTuple):
    """What a command did in one channel."""

    owner: int
    command: int
    way: DmaWay
    start_ps: int
    end_ps: int
    num_packets: int


@dataclass(slots=True)
class _Open:
    """Packets of a command; ``is_sent`` when those of another have set out behind them."""

    command: int
    start_ps: int
    end_ps: int = 0
    num_packets: int = 0
    num_away: int = 0
    is_sent: bool = False
    way: DmaWay = DmaWay.READ


@dataclass(slots=True)
class DmaSpans:
    """Follows packets; a channel sends those of one access after those of another, in order.

    A packet is told by its long or short first hop: a request of a read is one flit.
    """

    _away: dict[int, _Open] = field(default_factory=dict)  # by packet
    _last: dict[tuple[int, bool], _Open] = field(default_factory=dict)  # by owner and length

    def set_out(
        self, owner: int, command: int, packet: int, at_ps: int, *, is_long: bool
    ) -> Iterator[DmaSpan]:
        """A packet leaves its DMA; gives the span that this one ends, if any."""
        last = self._last.get((owner, is_long))
        if last is None or last.command != command or (last.is_sent and not last.num_away):
            if last is not None:
                last.is_sent = True
                if not last.num_away:
                    yield _span(owner, last)
            last = self._last[owner, is_long] = _Open(command, at_ps)
        last.num_packets += 1
        last.num_away += 1
        self._away[packet] = last

    def come_back(self, owner: int, packet: int, at_ps: int, way: DmaWay) -> Iterator[DmaSpan]:
        """The packet's answer is back, or a message has arrived."""
        found = self._away.pop(packet, None)
        if found is None:
            return  # it set out before the trace began
        found.way = way
        found.end_ps = max(found.end_ps, at_ps)
        found.num_away -= 1
        if found.is_sent and not found.num_away:
            yield _span(owner, found)

    def rest(self) -> Iterator[DmaSpan]:
        """What is left at the end; packets that never came back are not told."""
        for (owner, _), last in sorted(self._last.items()):
            if last.num_packets > last.num_away and not (last.is_sent and not last.num_away):
                yield _span(owner, last)
        self._last.clear()


def _span(owner: int, found: _Open) -> DmaSpan:
    return DmaSpan(owner, found.command, found.way, found.start_ps, found.end_ps, found.num_packets)
