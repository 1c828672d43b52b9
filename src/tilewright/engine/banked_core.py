"""The seam between ``BankedMemory`` and its two cores, and the core in Python."""

from collections import Counter
from typing import Protocol

from tilewright.engine.banked_channel import Access, Channel, Chunk
from tilewright.engine.banked_layout import bank_table, pieces
from tilewright.engine.banked_refresh import NEVER_PS
from tilewright.engine.banked_spec import BankedSpec, SimpleSpec
from tilewright.units import flit_ps

Completion = tuple[int, int, int]
"""An access, when its last data were done, and how long refresh held that up."""


class MemoryCore(Protocol):
    """Integers in, integers out; arguments have been checked. A time of -1: none is known."""

    def can_accept(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> bool: ...

    def room_ps(self, is_write: bool, address: int, num_bytes: int) -> int: ...

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None: ...

    def next_ps(self) -> int: ...

    def advance(self, now_ps: int) -> list[Completion]: ...

    def counters(self) -> list[tuple[int, ...]]:
        """The fields of ChannelCounters for each pseudo-channel."""
        ...

    def openings(self) -> list[list[int]]:
        """Return how many rows each bank has opened, by pseudo-channel."""
        ...


class ReferenceBankedCore:
    """Pseudo-channels behind one door."""

    def __init__(self, spec: BankedSpec) -> None:
        self._spec = spec
        self._banks = bank_table(spec)
        self._channels = [Channel(spec) for _ in range(spec.pseudo_channels)]
        self._advanced_ps = -1  # decisions up to here are made
        self._round = 0

    def can_accept(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> bool:
        until_ps = self._until_ps(now_ps)
        capacity = self._spec.write_queue_bursts if is_write else self._spec.read_queue_bursts
        return all(
            self._channels[channel].waiting(is_write, until_ps) + num_bursts <= capacity
            for channel, num_bursts in self._bursts(address, num_bytes).items()
        )

    def room_ps(self, is_write: bool, address: int, num_bytes: int) -> int:
        found_ps = 0
        for channel, num_bursts in self._bursts(address, num_bytes).items():
            room_ps = self._channels[channel].room_ps(is_write, num_bursts, self._advanced_ps)
            if room_ps is None:
                return -1
            found_ps = max(found_ps, room_ps)
        return found_ps

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None:
        parts = list(pieces(self._spec, address, num_bytes))
        access = Access(access_id, len(parts))
        for position, part in enumerate(parts):
            banks = self._banks[part.first_burst : part.first_burst + part.num_bursts]
            age = (self._round, access_id, position)
            chunk = Chunk(access, age, part.row, banks, now_ps, blocked_ps=0)
            self._channels[part.channel].accept(chunk, is_write, now_ps, self._until_ps(now_ps))

    def next_ps(self) -> int:
        event_ps = min(channel.event_ps for channel in self._channels)
        return -1 if event_ps == NEVER_PS else event_ps

    def advance(self, now_ps: int) -> list[Completion]:
        finished = [access for channel in self._channels for access in channel.advance(now_ps)]
        self._advanced_ps = now_ps
        self._round += 1
        return sorted(
            ((access.access_id, access.done_ps, access.refresh_ps) for access in finished),
            key=lambda completion: (completion[1], completion[0]),
        )

    def counters(self) -> list[tuple[int, ...]]:
        return [tuple(channel.counters()) for channel in self._channels]

    def openings(self) -> list[list[int]]:
        return [channel.openings() for channel in self._channels]

    def _until_ps(self, now_ps: int) -> int:
        """Column commands of ``now_ps`` itself are issued once ``advance`` has been there."""
        return now_ps if self._advanced_ps == now_ps else now_ps - 1

    def _bursts(self, address: int, num_bytes: int) -> Counter[int]:
        bursts: Counter[int] = Counter()
        for part in pieces(self._spec, address, num_bytes):
            bursts[part.channel] += part.num_bursts
        return bursts


class ReferenceSimpleCore:
    """A rate per pseudo-channel and a latency; it always has room."""

    def __init__(self, spec: SimpleSpec) -> None:
        self._spec = spec
        self._free_ps = [0] * spec.pseudo_channels
        self._num_bytes = [[0, 0] for _ in self._free_ps]
        self._busy_ps = [0] * spec.pseudo_channels
        self._idle_ps = [0] * spec.pseudo_channels
        self._waiting: list[tuple[int, int, bool, int, int]] = []
        self._now_ps = 0

    def can_accept(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> bool:
        del now_ps, is_write, address, num_bytes
        return True

    def room_ps(self, is_write: bool, address: int, num_bytes: int) -> int:
        del is_write, address, num_bytes
        return self._now_ps

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None:
        self._now_ps = now_ps
        self._waiting.append((now_ps, access_id, is_write, address, num_bytes))

    def next_ps(self) -> int:
        return self._waiting[0][0] if self._waiting else -1

    def advance(self, now_ps: int) -> list[Completion]:
        self._now_ps = now_ps
        waiting, self._waiting = sorted(self._waiting), []
        completions = [(row[1], self._serve(*row), 0) for row in waiting]
        return sorted(completions, key=lambda completion: (completion[1], completion[0]))

    def counters(self) -> list[tuple[int, ...]]:
        rows = zip(self._num_bytes, self._busy_ps, self._idle_ps, self._free_ps, strict=True)
        return [
            (*counts, 0, 0, 0, busy_ps, idle_ps, 0, 0, 0, 0, free_ps)
            for counts, busy_ps, idle_ps, free_ps in rows
        ]

    def openings(self) -> list[list[int]]:
        return [[] for _ in self._free_ps]

    def _serve(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> int:
        del access_id
        interleave = self._spec.interleave_bytes
        end, done_ps = address + num_bytes, 0
        while address < end:
            stop = min(end, (address // interleave + 1) * interleave)
            channel = address // interleave % self._spec.pseudo_channels
            start_ps = max(now_ps, self._free_ps[channel])
            rate = self._spec.bytes_per_us
            hold_ps = flit_ps(flit_bytes=stop - address, bytes_per_us=rate)
            self._idle_ps[channel] += start_ps - self._free_ps[channel]
            self._busy_ps[channel] = min(self._busy_ps[channel] + hold_ps, NEVER_PS)
            self._free_ps[channel] = min(start_ps + hold_ps, NEVER_PS)
            self._num_bytes[channel][is_write] += stop - address
            done_ps = max(done_ps, self._free_ps[channel])
            address = stop
        return done_ps + self._spec.latency_ps
