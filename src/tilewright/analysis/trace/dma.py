"""What DMA channels do, command by command: from the first packet out to the last one back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class DmaWay(Enum):
    """Which channel a command uses."""

    READ = "dma read"
    WRITE = "dma write"
    SEND = "dma send"


class DmaJob(NamedTuple):
    """What a command did in one channel."""

    owner: int
    command: int
    way: DmaWay
    start_ps: int
    end_ps: int
    num_packets: int


@dataclass(slots=True)
class _Flight:
    """Packets of a command that set out alike: how many are away, and the jobs of those back."""

    num_away: int = 0
    jobs: dict[DmaWay, DmaJob] = field(default_factory=dict)


Kind = tuple[int, bool]
"""An owner, and whether its packets are long: a request of a read is one flit, data are more."""


@dataclass(slots=True)
class DmaJobs:
    """Follows packets. A channel sends those of one access after those of another, in order; so a
    command's job is over when its packets are back and another's have set out behind them. Where
    a PE has several channels of a kind, packets of two commands alternate, and a job whose packets
    are all back for a while is told in parts.
    """

    _away: dict[int, tuple[Kind, int, int]] = field(default_factory=dict)  # by packet
    _last: dict[Kind, int] = field(default_factory=dict)  # the command that set out last
    _flights: dict[tuple[Kind, int], _Flight] = field(default_factory=dict)  # by command

    def set_out(
        self, owner: int, command: int, packet: int, at_ps: int, *, is_long: bool
    ) -> Iterator[DmaJob]:
        """A packet leaves its DMA; gives the jobs that this one ends."""
        kind = owner, is_long
        before = self._last.get(kind)
        self._last[kind] = command
        if before is not None and before != command:
            yield from self._ended(kind, before)
        self._flights.setdefault((kind, command), _Flight()).num_away += 1
        self._away[packet] = kind, command, at_ps

    def come_back(self, packet: int, at_ps: int, way: DmaWay) -> Iterator[DmaJob]:
        """The packet's answer is back, or a message has arrived."""
        if packet not in self._away:
            return  # it set out before the trace began
        kind, command, start_ps = self._away.pop(packet)
        flight = self._flights[kind, command]
        flight.num_away -= 1
        known = flight.jobs.get(way, DmaJob(kind[0], command, way, start_ps, at_ps, 0))
        flight.jobs[way] = known._replace(
            start_ps=min(known.start_ps, start_ps),
            end_ps=max(known.end_ps, at_ps),
            num_packets=known.num_packets + 1,
        )
        if self._last[kind] != command:
            yield from self._ended(kind, command)

    def _ended(self, kind: Kind, command: int) -> Iterator[DmaJob]:
        flight = self._flights.get((kind, command))
        if flight is not None and not flight.num_away:
            del self._flights[kind, command]
            yield from flight.jobs.values()

    def rest(self) -> Iterator[DmaJob]:
        """What is left at the end; packets that never came back are not told."""
        for flight in self._flights.values():
            yield from flight.jobs.values()
        self._flights.clear()
