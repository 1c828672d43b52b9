"""Memories that serve accesses: banked (an HBM slice, exactly) and simple (a rate and a latency).

Both run on either engine's core with the same results; ``docs/memory.md`` is the law. Whoever
drives one calls ``accept`` for what arrives, then ``advance`` at that time and at ``next_ps``.
"""

from dataclasses import astuple

from tilewright.engine.banked_core import (
    Completion,
    MemoryCore,
    ReferenceBankedCore,
    ReferenceSimpleCore,
)
from tilewright.engine.banked_counters import ChannelCounters
from tilewright.engine.banked_layout import bank_table, banked_numbers, pieces
from tilewright.engine.banked_spec import (
    BankedSpec,
    SimpleSpec,
)
from tilewright.engine.kind import AUTO, Auto, EngineKind
from tilewright.engine.select import resolve_engine
from tilewright.engine.spec import check_integer
from tilewright.errors import EngineError
from tilewright.native import native_built, native_core

MAX_NOW_PS = 2**61  # leaves room for any distance behind it
MAX_ID = 2**62
MAX_ACCESS_BYTES = 2**20


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
        if kind is EngineKind.NATIVE:
            core = native_core().BankedCore(banked_numbers(spec), bank_table(spec))
        else:
            core = ReferenceBankedCore(spec)
        super().__init__(core, kind, spec.capacity_bytes)
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
        if kind is EngineKind.NATIVE:
            core = native_core().SimpleCore(*astuple(spec))
        else:
            core = ReferenceSimpleCore(spec)
        super().__init__(core, kind, MAX_ID)
        self.spec = spec
