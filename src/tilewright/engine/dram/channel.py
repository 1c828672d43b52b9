"""One pseudo-channel: queues, direction, the next command. ``docs/memory.md`` is the law.

Column commands are decided a *run* at a time: bursts of one chunk that follow each other at the
bus's pace, with nothing that could come in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.engine.dram.banks import (
    CLOSED,
    LONG_AGO_PS,
    NEVER_PS,
    Banks,
    Refresh,
    Tally,
)
from tilewright.engine.dram.spec import BankedSpec
from tilewright.engine.statistics import ChannelCounters


@dataclass(slots=True, eq=False)
class Access:
    """What the caller asked for; complete when no chunk is left."""

    access_id: int
    chunks_left: int
    done_ps: int = 0
    refresh_ps: int = 0
    last_position: int = 0  # of the chunk that decided the two

    def finish(self, position: int, done_ps: int, refresh_ps: int) -> None:
        """A chunk is done. The last to be done decides, of equal ones the first in the access."""
        self.chunks_left -= 1
        if (done_ps, -position) > (self.done_ps, -self.last_position):
            self.done_ps, self.refresh_ps, self.last_position = done_ps, refresh_ps, position


@dataclass(slots=True, eq=False)
class Chunk:
    """The bursts of an access in one channel that are neighbours; they go in order."""

    access: Access
    age: tuple[int, int, int]  # round of accepts, access, position in it
    row: int
    banks: tuple[int, ...]  # of each burst
    accepted_ps: int
    blocked_ps: int  # of the last bank, when it was accepted
    issued: int = 0

    @property
    def next_bank(self) -> int:
        return self.banks[self.issued]

    @property
    def is_begun(self) -> bool:
        return 0 < self.issued < len(self.banks)


@dataclass(slots=True)
class Queue:
    """Waiting bursts of one direction, as chunks in order of age, also by bank."""

    capacity: int
    num_banks: int
    chunks: list[Chunk] = field(default_factory=list)
    by_bank: list[list[Chunk]] = field(init=False)
    bursts: int = 0

    def __post_init__(self) -> None:
        self.by_bank = [[] for _ in range(self.num_banks)]

    def add(self, chunk: Chunk) -> None:
        _insert(self.chunks, chunk)
        for bank in dict.fromkeys(chunk.banks):
            _insert(self.by_bank[bank], chunk)
        self.bursts += len(chunk.banks)

    def drop(self, chunk: Chunk, issued: tuple[int, ...]) -> None:
        """Bursts of a chunk have been issued."""
        self.bursts -= len(issued)
        for bank in dict.fromkeys(issued):
            if bank not in chunk.banks[chunk.issued :]:
                self.by_bank[bank].remove(chunk)
        if chunk.issued == len(chunk.banks):
            self.chunks.remove(chunk)


@dataclass(slots=True)
class Run:
    """The last decided run, which may still be going on."""

    start_ps: int = LONG_AGO_PS
    num_bursts: int = 0
    is_write: bool = False


class Channel:
    """``event_ps`` is when the next decision is due, NEVER_PS if none is."""

    def __init__(self, spec: BankedSpec) -> None:
        self._spec = spec
        self._banks = Banks(spec)
        self._pace_ps = self._banks.pace_ps
        self._refresh = Refresh(spec)
        self._reads = Queue(spec.read_queue_bursts, spec.num_banks)
        self._writes = Queue(spec.write_queue_bursts, spec.num_banks)
        self._is_write = False  # the current direction
        self._is_draining = False
        self._num_begun = 0
        self._run = Run()
        self._decided_ps = -1
        self._tally = Tally()
        self._finished: list[Access] = []
        self._heads: list[tuple[int, Chunk]] | None = None  # known until a queue changes
        self.event_ps = NEVER_PS

    def counters(self) -> ChannelCounters:
        return self._tally.counters(self._banks.data_end_ps)

    def openings(self) -> list[int]:
        """Return how many rows each bank has opened for a burst."""
        return list(self._banks.openings)

    def waiting(self, is_write: bool, until_ps: int) -> int:
        """Bursts in a queue when the column commands up to ``until_ps`` have been issued."""
        run = self._run
        going = 0
        if run.is_write == is_write and run.start_ps + run.num_bursts * self._pace_ps > until_ps:
            past = (until_ps - run.start_ps) // self._pace_ps + 1
            going = run.num_bursts - max(0, past)
        return self._queue(is_write).bursts + going

    def room_ps(self, is_write: bool, num_bursts: int, now_ps: int) -> int | None:
        """When the queue has room for so many, as far as that is decided."""
        queue = self._queue(is_write)
        if queue.bursts + num_bursts > queue.capacity:
            return None
        surplus = self.waiting(is_write, now_ps) + num_bursts - queue.capacity
        if surplus <= 0:
            return now_ps
        past = self._run.num_bursts - (self.waiting(is_write, now_ps) - queue.bursts)
        return self._run.start_ps + (past + surplus - 1) * self._pace_ps

    def accept(self, chunk: Chunk, is_write: bool, now_ps: int, until_ps: int) -> None:
        """Queue a chunk; column commands up to ``until_ps`` have been issued."""
        self._refresh.settle(self._banks, now_ps)
        chunk.blocked_ps = self._refresh.blocked_ps(chunk.banks[-1], now_ps)
        self._queue(is_write).add(chunk)
        self._heads = None
        if self.waiting(is_write=True, until_ps=until_ps) >= self._spec.drain_high_bursts:
            self._is_draining = True
        self.event_ps = now_ps

    def advance(self, now_ps: int) -> list[Access]:
        """Make the decisions that are due; return the accesses that they completed."""
        self._finished = []
        while self.event_ps <= now_ps:
            self._decide(self.event_ps)
        return self._finished

    def _queue(self, is_write: bool) -> Queue:
        return self._writes if is_write else self._reads

    def _decide(self, now_ps: int) -> None:
        """One instant: repeat the steps of the law until none of them does anything."""
        if self._is_last_of_run(now_ps):  # it goes after the row commands, and a turn after it
            self._precharge(now_ps)
            self._activate(now_ps)
        self._decided_ps = now_ps
        is_moving = True
        while is_moving:
            self._refresh.settle(self._banks, now_ps)
            self._turn(now_ps)
            self._precharge(now_ps)
            self._activate(now_ps)
            is_moving = self._issue(now_ps)
        self.event_ps = max(now_ps, self._next_event_ps(now_ps))

    def _is_last_of_run(self, now_ps: int) -> bool:
        """If the last burst of an earlier decided run goes at this instant."""
        run_goes_on = self._run.num_bursts > 1 and self._banks.issued_ps == now_ps
        return run_goes_on and self._decided_ps < now_ps

    # --- direction

    def _turn(self, now_ps: int) -> None:
        if now_ps < self._banks.issued_ps:
            return  # inside a run, which is never cut by a turn
        if self._is_draining and self._writes.bursts <= self._spec.drain_low_bursts:
            self._is_draining = False
            self._heads = None
        if self._wants_turn():
            self._is_write = not self._is_write
            self._heads = None

    def _wants_turn(self) -> bool:
        """If no chunk is begun and the other direction is due."""
        if self._num_begun:
            return False
        if self._is_write:
            return self._reads.bursts > 0 and not self._is_draining
        return self._writes.bursts > 0 and (self._is_draining or self._reads.bursts == 0)

    def _is_closing(self) -> bool:
        """If the other direction waits for the begun chunks of this one."""
        if self._is_write:
            return self._reads.bursts > 0 and not self._is_draining
        return self._is_draining

    def _eligible(self, chunks: list[Chunk]) -> list[Chunk]:
        return [chunk for chunk in chunks if chunk.is_begun] if self._is_closing() else chunks

    # --- rows

    def _find_heads(self) -> list[tuple[int, Chunk]]:
        """Each bank that is wanted with the chunk that decides its row."""
        if self._heads is None:
            by_bank = self._queue(self._is_write).by_bank
            if self._is_closing():
                by_bank = [self._eligible(chunks) for chunks in by_bank]
            self._heads = [(bank, chunks[0]) for bank, chunks in enumerate(by_bank) if chunks]
        return self._heads

    def _to_precharge(self) -> list[int]:
        rows = self._banks.open_row
        return [bank for bank, head in self._find_heads() if rows[bank] not in (CLOSED, head.row)]

    def _to_activate(self) -> list[tuple[int, Chunk]]:
        """In the order in which they may have it: by age, then by place in the chunk."""
        rows = self._banks.open_row
        closed = [pair for pair in self._find_heads() if rows[pair[0]] == CLOSED]
        if len(closed) < 2:
            return closed
        return sorted(closed, key=lambda pair: (pair[1].age, _place(pair[1], pair[0])))

    def _precharge(self, now_ps: int) -> None:
        for bank in self._to_precharge():
            if self._banks.precharge_ps[bank] <= now_ps:
                self._banks.precharge(bank, now_ps)

    def _activate(self, now_ps: int) -> None:
        for bank, head in self._to_activate():
            if self._banks.activate_ps(bank) <= now_ps:
                self._banks.activate(bank, head.row, now_ps)

    # --- columns

    def _ready(self) -> Iterator[tuple[int, Chunk]]:
        """Chunks whose next burst has its row open, in order of age, and when it may go."""
        rows = self._banks.open_row
        for chunk in self._eligible(self._queue(self._is_write).chunks):
            bank = chunk.next_bank
            if rows[bank] == chunk.row:
                yield self._banks.column_ps(bank, self._is_write), chunk

    def _issue(self, now_ps: int) -> bool:
        if self._banks.floor_ps(self._is_write) > now_ps:
            return False
        for time_ps, chunk in self._ready():
            if time_ps <= now_ps:
                self._serve_run(chunk, now_ps)
                return True
        return False

    def _serve_run(self, chunk: Chunk, start_ps: int) -> None:
        queue = self._queue(self._is_write)
        limit = self._run_limit(chunk)
        until_ps = min(self._refresh.due_ps, self._overtaken_ps(chunk, start_ps))
        self._num_begun -= chunk.is_begun
        first, now_ps = chunk.issued, start_ps
        self._issue_burst(chunk, now_ps)
        while chunk.issued - first < limit and self._follows(chunk, now_ps, until_ps):
            now_ps += self._pace_ps
            self._issue_burst(chunk, now_ps)
        queue.drop(chunk, chunk.banks[first : chunk.issued])
        self._heads = None
        self._num_begun += chunk.is_begun
        self._run = Run(start_ps, chunk.issued - first, self._is_write)
        if chunk.issued == len(chunk.banks):
            self._finish(chunk)

    def _run_limit(self, chunk: Chunk) -> int:
        """Bursts after which the end of a drain could be due, if the chunk has so many."""
        limit = len(chunk.banks) - chunk.issued
        if self._is_write:
            low = self._spec.drain_low_bursts
            limit = min(limit, self._spec.drain_high_bursts - low)
            if self._is_draining:
                limit = min(limit, self._writes.bursts - low)
        return limit

    def _overtaken_ps(self, chunk: Chunk, now_ps: int) -> int:
        """Before this time no older chunk can issue a burst, whatever happens."""
        timing, banks = self._spec.timing, self._banks
        rcd_ps = timing.rcd_write_ps if self._is_write else timing.rcd_read_ps
        found_ps = NEVER_PS
        for older in self._queue(self._is_write).chunks:
            if older is chunk:
                break
            is_open = banks.open_row[older.next_bank] == older.row
            ready_ps = banks.column_ps(older.next_bank, self._is_write)
            found_ps = min(found_ps, ready_ps if is_open else now_ps + rcd_ps)
        return found_ps

    def _follows(self, chunk: Chunk, now_ps: int, until_ps: int) -> bool:
        """If the next burst of the chunk goes next, one pace after the one at ``now_ps``."""
        bank = chunk.next_bank
        next_ps = now_ps + self._pace_ps
        return (
            next_ps < until_ps
            and self._banks.open_row[bank] == chunk.row
            and self._queue(self._is_write).by_bank[bank][0].row == chunk.row
            and self._banks.column_ps(bank, self._is_write) == next_ps
        )

    def _issue_burst(self, chunk: Chunk, now_ps: int) -> None:
        bank = chunk.next_bank
        if self._banks.bus_ps(self._is_write) < now_ps:
            last_refresh = self._refresh.last(bank)
            gap = self._banks.gap(bank, self._is_write, now_ps, chunk.accepted_ps, last_refresh)
            self._tally.add_gap(gap)
        self._banks.issue(bank, self._is_write, now_ps, self._tally)
        chunk.issued += 1

    def _finish(self, chunk: Chunk) -> None:
        blocked_ps = self._refresh.blocked_ps(chunk.banks[-1], self._banks.issued_ps)
        refresh_ps = blocked_ps - chunk.blocked_ps
        access = chunk.access
        access.finish(chunk.age[2], self._banks.data_end_ps, refresh_ps)
        if access.chunks_left == 0:
            self._finished.append(access)

    # --- what comes next

    def _next_event_ps(self, now_ps: int) -> int:
        times = [self._banks.precharge_ps[bank] for bank in self._to_precharge()]
        times += [self._banks.activate_ps(bank) for bank, _ in self._to_activate()]
        if self._reads.bursts or self._writes.bursts:
            times.append(self._refresh.due_ps)
        ends_drain = self._is_draining and self._writes.bursts <= self._spec.drain_low_bursts
        if ends_drain or self._wants_turn():
            times.append(self._banks.issued_ps)
        found_ps = min(times, default=NEVER_PS)
        floor_ps = max(now_ps, self._banks.floor_ps(self._is_write))
        for time_ps, _ in self._ready():
            found_ps = min(found_ps, time_ps)
            if found_ps <= floor_ps:
                break  # none goes before that
        return found_ps


def _insert(chunks: list[Chunk], chunk: Chunk) -> None:
    """Keep the order of age; nearly always the new one is the youngest."""
    place = len(chunks)
    while place and chunks[place - 1].age > chunk.age:
        place -= 1
    chunks.insert(place, chunk)


def _place(chunk: Chunk, bank: int) -> int:
    return chunk.banks.index(bank, chunk.issued)
