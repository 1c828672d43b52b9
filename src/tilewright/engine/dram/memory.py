"""Memories that serve accesses: banked (an HBM slice, exactly) and simple (a rate and a latency).

Both run on either engine's core with the same results; ``docs/memory.md`` is the law. Whoever
drives one calls ``accept`` for what arrives, then ``advance`` at that time and at ``next_ps``.
"""

from collections import Counter

from tilewright.engine.dram.banks import NEVER_PS
from tilewright.engine.dram.channel import Access, Channel, Chunk
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec, pieces
from tilewright.engine.spec import AUTO, Auto, EngineKind, check_integer, resolve_engine
from tilewright.engine.statistics import ChannelCounters
from tilewright.errors import EngineError
from tilewright.native import native_built, native_core
from tilewright.units import flit_ps

Completion = tuple[int, int, int]
"""An access, when its last data were done, and how long refresh held that up."""


class ReferenceBankedCore:
    """Pseudo-channels behind one door. A time of -1 is none that is known.

    The compiled core has the same methods; ``Memory`` has checked their arguments.
    """

    def __init__(self, spec: BankedSpec) -> None:
        self._spec = spec
        self._banks = spec.bank_table
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
        """The fields of ChannelCounters for each pseudo-channel."""
        return [tuple(channel.counters()) for channel in self._channels]

    def openings(self) -> list[list[int]]:
        """Return how many rows each bank has opened, by pseudo-channel."""
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

    def can_accept(self, _now_ps: int, _is_write: bool, _address: int, _num_bytes: int) -> bool:
        return True

    def room_ps(self, _is_write: bool, _address: int, _num_bytes: int) -> int:
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
        completions = [(row[1], self._serve(row[0], *row[2:]), 0) for row in waiting]
        return sorted(completions, key=lambda completion: (completion[1], completion[0]))

    def counters(self) -> list[tuple[int, ...]]:
        rows = zip(self._num_bytes, self._busy_ps, self._idle_ps, self._free_ps, strict=True)
        return [
            (*counts, 0, 0, 0, busy_ps, idle_ps, 0, 0, 0, 0, free_ps)
            for counts, busy_ps, idle_ps, free_ps in rows
        ]

    def openings(self) -> list[list[int]]:
        return [[] for _ in self._free_ps]

    def _serve(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> int:
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


MAX_NOW_PS = 2**61  # leaves room for any distance behind it
MAX_ID = 2**62
MAX_ACCESS_BYTES = 2**20


MemoryCore = ReferenceBankedCore | ReferenceSimpleCore


class Memory:
    """What the two memories share: checks in front of a core."""

    def __init__(self, core: MemoryCore, kind: EngineKind, capacity_bytes: int) -> None:
        self.kind = kind
        self.capacity_bytes = capacity_bytes
        self._core = core
        self._now_ps = 0

    def can_accept(self, now_ps: int, is_write: bool, address: int, num_bytes: int) -> bool:
        """If an access would find room at ``now_ps``; after ``advance`` there, in what it left."""
        self._check_time(now_ps)
        self._check_access(is_write, address, num_bytes)
        return self._core.can_accept(now_ps, is_write, address, num_bytes)

    def room_ps(self, is_write: bool, address: int, num_bytes: int) -> int | None:
        """When there is room, as far as it is decided; None: ask again at ``next_ps``.

        Once ``advance`` has been at that time, ``can_accept`` is true.
        """
        self._check_access(is_write, address, num_bytes)
        found_ps = self._core.room_ps(is_write, address, num_bytes)
        return None if found_ps < 0 else found_ps

    def accept(
        self, now_ps: int, access_id: int, is_write: bool, address: int, num_bytes: int
    ) -> None:
        """Take an access in; ``advance(now_ps)`` has to follow."""
        check_integer("memory", "access_id", access_id, 0, MAX_ID)
        if not self.can_accept(now_ps, is_write, address, num_bytes):
            found = f"access {access_id} at {now_ps} ps and no room for it"
            fix = "ask can_accept first and wait for room_ps or next_ps"
            raise EngineError("memory", found, "room in every queue it needs", fix)
        self._now_ps = now_ps
        self._core.accept(now_ps, access_id, is_write, address, num_bytes)

    def next_ps(self) -> int | None:
        """When decisions are due next."""
        found_ps = self._core.next_ps()
        return None if found_ps < 0 else found_ps

    def advance(self, now_ps: int) -> list[Completion]:
        """Make the decisions that are due; return what they complete, by (done, access)."""
        self._check_time(now_ps)
        self._now_ps = now_ps
        return self._core.advance(now_ps)

    def counters(self) -> tuple[ChannelCounters, ...]:
        """One per pseudo-channel; in mid-run they contain commands that lie ahead."""
        return tuple(ChannelCounters(*row) for row in self._core.counters())

    def openings(self) -> tuple[tuple[int, ...], ...]:
        """Return how many rows each bank has opened, by pseudo-channel; empty without banks."""
        return tuple(tuple(row) for row in self._core.openings())

    def _check_time(self, now_ps: int) -> None:
        check_integer("memory", "now_ps", now_ps, 0, MAX_NOW_PS)
        if now_ps < self._now_ps:
            expected = f"at least {self._now_ps} ps"
            raise EngineError("memory", f"{now_ps} ps", expected, "call it in order of time")
        next_ps = self._core.next_ps()
        if 0 <= next_ps < now_ps:
            found, expected = f"{now_ps} ps", f"decisions due at {next_ps} ps made first"
            raise EngineError("memory", found, expected, "call advance at next_ps")

    def _check_access(self, is_write: bool, address: int, num_bytes: int) -> None:
        if type(is_write) is not bool:
            raise EngineError("memory", f"is_write = {is_write!r}", "a bool", "pass True or False")
        check_integer("memory", "num_bytes", num_bytes, 1, MAX_ACCESS_BYTES)
        check_integer("memory", "address", address, 0, self.capacity_bytes - num_bytes)


class BankedMemory(Memory):
    """Pseudo-channels with banks, rows, turnaround and refresh, served first ready, first come.

    A read that finds its bank closed, on a memory of one channel with one bank:

    >>> from tilewright.engine.dram.spec import BankedTimingSpec
    >>> timing = BankedTimingSpec(
    ...     bl_ps=2, cl_ps=20, cwl_ps=10, rcd_read_ps=39, rcd_write_ps=19, rp_ps=33, ras_ps=57,
    ...     rc_ps=90, ccd_s_ps=2, ccd_l_ps=4, ccd_r_ps=2, rrd_s_ps=5, rrd_l_ps=7, faw_ps=30,
    ...     wtr_s_ps=9, wtr_l_ps=13, rtw_ps=25, wr_ps=42, rtp_ps=12)
    >>> spec = BankedSpec(
    ...     pseudo_channels=1, stack_ids=1, bank_groups=1, banks=1, rows=8, row_bytes=1024,
    ...     burst_bytes=32, interleave_bytes=256, read_queue_bursts=128, write_queue_bursts=128,
    ...     address_map=("burst", "bank_group", "column", "bank", "stack_id", "row"),
    ...     drain_high_bursts=96, drain_low_bursts=32, timing=timing, refresh=None)
    >>> memory = BankedMemory(spec)
    >>> memory.accept(0, access_id=7, is_write=False, address=0, num_bytes=32)
    >>> while (now_ps := memory.next_ps()) is not None:
    ...     completions = memory.advance(now_ps)
    >>> completions
    [(7, 61, 0)]
    """

    def __init__(self, spec: BankedSpec, choice: EngineKind | Auto = AUTO) -> None:
        kind = resolve_engine(choice, native_built=native_built())
        make = native_core().BankedCore if kind is EngineKind.NATIVE else ReferenceBankedCore
        super().__init__(make(spec), kind, spec.capacity_bytes)
        self.spec = spec

    def _check_access(self, is_write: bool, address: int, num_bytes: int) -> None:
        super()._check_access(is_write, address, num_bytes)
        capacity = self.spec.write_queue_bursts if is_write else self.spec.read_queue_bursts
        if num_bytes + 2 * self.spec.burst_bytes <= capacity * self.spec.burst_bytes:
            return  # fits, however it lies
        need = [0] * self.spec.pseudo_channels
        for piece in pieces(self.spec, address, num_bytes):
            need[piece.channel] += piece.num_bursts
        if max(need) > capacity:
            found = f"an access of {max(need)} bursts in one pseudo-channel"
            fix = "cut the access, or lengthen the queue"
            raise EngineError("memory", found, f"at most the queue's {capacity}", fix)


class SimpleMemory(Memory):
    """No banks and no refresh: each pseudo-channel moves bytes at its rate, then a latency.

    >>> spec = SimpleSpec(
    ...     pseudo_channels=8, interleave_bytes=256, bytes_per_us=32_000, latency_ps=8_000)
    >>> memory = SimpleMemory(spec)
    >>> memory.accept(0, access_id=7, is_write=False, address=0, num_bytes=1024)
    >>> memory.advance(0)
    [(7, 16000, 0)]
    """

    def __init__(self, spec: SimpleSpec, choice: EngineKind | Auto = AUTO) -> None:
        kind = resolve_engine(choice, native_built=native_built())
        make = native_core().SimpleCore if kind is EngineKind.NATIVE else ReferenceSimpleCore
        super().__init__(make(spec), kind, MAX_ID)
        self.spec = spec
