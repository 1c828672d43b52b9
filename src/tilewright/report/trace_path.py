"""Where the time of a program went: along its critical path, back from the end of its last command.

A trace tells of every packet and hold of the program when it was ready, started and ended. What
was ready at a time came after something that ended then, or a known delay before; so the path goes
back by exact equality of times, and its parts are integers that add up. ADR 0013 has the rules.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.errors import InternalError
from tilewright.report.trace_server import ServerKind, ServerTable

__all__ = ("OwnerTrace", "PathDelays", "ProgramPath", "break_down_program")

Column = npt.NDArray[np.int64]

_WORK = {
    ServerKind.CPU: "issue",
    ServerKind.GEMM: "gemm",
    ServerKind.VECTOR: "vector",
    ServerKind.TCM_PORT: "tcm_port",
    ServerKind.CONTROL: "message",
}


@dataclass(frozen=True, slots=True)
class PathDelays:
    """What may lie between an end and what comes after it; and the window of a DMA channel."""

    dispatch_ps: int
    hit_ps: int
    walk_ps: int
    window_packets: int


@dataclass(frozen=True, slots=True)
class OwnerTrace:
    """All that one owner's packets did: columns of TraceRecord and of MemoryRecord."""

    rows: Column  # (n, 5)
    memory_rows: Column  # (n, 5)
    is_cut: bool = False  # what came first is not there


class ProgramPath(NamedTuple):
    """Parts add up to ``end_ps - start_ps``; of a cut trace the path starts where it was cut."""

    start_ps: int
    end_ps: int
    parts_ps: dict[str, int]


class _Prior(NamedTuple):
    """What a thing came after, and what the time between the two was, but for the scheduler's."""

    thing: int
    part: str = "issue"
    dispatch_ps: int = 0


def break_down_program(
    trace: OwnerTrace, servers: ServerTable, delays: PathDelays, end_ps: int
) -> ProgramPath | None:
    """The path to ``end_ps``; None if the program did nothing that takes time before.

    What is ready only then is no part of it: the answer that a PE sends to the host.
    """
    rows = trace.rows[trace.rows[:, 2] < end_ps]
    if not len(rows):
        return None
    things = _Things(rows, trace.memory_rows, servers)
    parts: dict[str, int] = {}
    thing = things.last
    end_ps = int(things.ends[thing])
    while True:
        for part, time_ps in things.parts_of(thing):
            parts[part] = parts.get(part, 0) + time_ps
        start_ps = int(things.starts[thing])
        prior = _prior(things, delays, thing)
        if prior is None:
            break
        thing = prior.thing
        between_ps = start_ps - int(things.ends[thing]) - prior.dispatch_ps
        parts[prior.part] = parts.get(prior.part, 0) + between_ps
        parts["issue"] = parts.get("issue", 0) + prior.dispatch_ps
    if sum(parts.values()) != end_ps - start_ps or min(parts.values()) < 0:
        found = f"parts {parts} of a path from {start_ps} to {end_ps} ps"
        raise InternalError("critical path", found, "parts that add up", "report this")
    return ProgramPath(start_ps, end_ps, parts)


class _Things:
    """Holds, exchanges and messages: the rows of one packet each, in the order of packet ids.

    A command's tasks have the ids between its issue and the next one.
    """

    def __init__(self, rows: Column, memory_rows: Column, servers: ServerTable) -> None:
        self.rows = rows[np.argsort(rows[:, 1], kind="stable")]
        self.ids, self.first = np.unique(self.rows[:, 1], return_index=True)
        self.stop = np.append(self.first[1:], len(self.rows))
        self._servers = servers
        self._memory_rows = {int(row[1]): row for row in memory_rows}
        used, self._places = np.unique(self.rows[:, 0], return_inverse=True)
        self._used = [servers[int(number)] for number in used]
        self.kinds = self._of_server("kind")[self.first]
        self.starts = self.rows[self.first, 2]
        self.ends = self.rows[self.stop - 1, 4] + self._of_server("latency_ps")[self.stop - 1]
        self._by_end = np.argsort(self.ends, kind="stable")
        self._ends_in_order = self.ends[self._by_end]
        self.issues = np.flatnonzero(self.kinds == ServerKind.CPU)
        self.commands = np.searchsorted(self.ids[self.issues], self.ids, side="right") - 1
        self._sort_packets()

    def _of_server(self, field: str) -> Column:
        """Something of the server of each row."""
        return np.array([getattr(server, field) for server in self._used], np.int64)[self._places]

    def _sort_packets(self) -> None:
        """Which packets are accesses, which of these write, and which are messages."""
        are_memories = self._of_server("kind") == ServerKind.MEMORY
        self.is_exchange = np.logical_or.reduceat(are_memories, self.first)
        self.is_transfer = (self.kinds == ServerKind.LINK) & ~self.is_exchange
        is_message = self.is_transfer | (self.kinds == ServerKind.CONTROL)
        self.message_commands = set(self.commands[is_message].tolist())
        self.is_write = self._find_writes()
        self._channels = {
            writes: _Channel.of(self, self.is_exchange & (self.is_write == writes))
            for writes in (False, True)
        }

    def _find_writes(self) -> npt.NDArray[np.bool_]:
        """A read's request is one flit, a write's answer is. Where both are, its command tells."""
        is_long = self.rows[:, 4] - self.rows[:, 3] > self._of_server("flit_ps")
        writes = self.is_exchange & is_long[self.first]
        reads = self.is_exchange & is_long[self.stop - 1]
        stages = np.array([server.unit == "tcm.write" for server in self._used])
        storing = writes | (stages[self._places[self.first]] & (self.kinds == ServerKind.TCM_PORT))
        stored = np.isin(self.commands, self.commands[storing])
        loaded = np.isin(self.commands, self.commands[reads])
        found: npt.NDArray[np.bool_] = writes | (self.is_exchange & ~reads & stored & ~loaded)
        return found

    @property
    def last(self) -> int:
        """Of those that end last, the one with the greatest id."""
        found = np.flatnonzero(self.ends == self.ends.max())
        return int(found[-1])

    def issue_of(self, thing: int) -> int | None:
        """The issue of its command."""
        command = int(self.commands[thing])
        return None if command < 0 else int(self.issues[command])

    def ended_at(self, at_ps: int, before: int) -> int | None:
        """What ended exactly then, of earlier ids; the nearest one."""
        low, high = np.searchsorted(self._ends_in_order, (at_ps, at_ps + 1))
        found = [int(thing) for thing in self._by_end[low:high] if thing < before]
        return max(found, default=None)

    def last_end_in(self, low_ps: int, high_ps: int, before: int) -> int | None:
        """The latest end between two times, both included, of earlier ids."""
        low, high = np.searchsorted(self._ends_in_order, (low_ps, high_ps + 1))
        for thing in self._by_end[low:high][::-1]:
            if thing < before:
                return int(thing)
        return None

    def came_back_at(self, thing: int) -> int | None:
        """The packet of the same channel whose return let this one out, if any."""
        return self._channels[bool(self.is_write[thing])].back_at(int(self.starts[thing]))

    def under_way(self, thing: int) -> int:
        """Packets of its channel that had set out and were not back just before it set out."""
        return self._channels[bool(self.is_write[thing])].under_way(int(self.starts[thing]))

    def parts_of(self, thing: int) -> Iterator[tuple[str, int]]:
        """What the time from its start to its end was."""
        kind = ServerKind(int(self.kinds[thing]))
        if kind in _WORK:
            yield _WORK[kind], int(self.ends[thing] - self.starts[thing])
            return
        work = "message"
        if self.is_exchange[thing]:
            work = "memory_write" if self.is_write[thing] else "memory_read"
        hops = self.rows[self.first[thing] : self.stop[thing]].tolist()
        untils = [*(hop[2] for hop in hops[1:]), int(self.ends[thing])]
        for (server, packet, ready_ps, start_ps, _), until_ps in zip(hops, untils, strict=True):
            total_ps = until_ps - ready_ps
            if self._servers[server].kind is ServerKind.MEMORY:
                record = self._memory_rows.get(packet)
                held_ps = 0 if record is None else min(int(record[4]), total_ps)
                yield "refresh", held_ps
            else:
                held_ps = start_ps - ready_ps
                yield "link_queueing", held_ps
            yield work, total_ps - held_ps


@dataclass(frozen=True, slots=True)
class _Channel:
    """The packets of one DMA channel, by when they set out and by when they were back."""

    starts: Column
    ends: Column
    by_end: Column  # things

    @classmethod
    def of(cls, things: _Things, mask: npt.NDArray[np.bool_]) -> "_Channel":
        chosen = np.flatnonzero(mask)
        order = np.argsort(things.ends[chosen], kind="stable")
        by_end = chosen[order]
        return cls(np.sort(things.starts[chosen]), things.ends[by_end], by_end)

    def back_at(self, at_ps: int) -> int | None:
        place = int(np.searchsorted(self.ends, at_ps))
        is_there = place < len(self.ends) and self.ends[place] == at_ps
        return int(self.by_end[place]) if is_there else None

    def under_way(self, at_ps: int) -> int:
        return int(np.searchsorted(self.starts, at_ps) - np.searchsorted(self.ends, at_ps))


def _prior(things: _Things, delays: PathDelays, thing: int) -> _Prior | None:
    """What the thing came after; None for the first of all."""
    kind = ServerKind(int(things.kinds[thing]))
    if kind is ServerKind.CPU:
        return _prior_of_issue(things, thing)
    if things.is_exchange[thing]:
        found = _prior_of_exchange(things, delays, thing)
    else:
        found = _prior_of_work(things, delays, thing)
    return _since_issue(things, thing) if found is None else found


def _prior_of_issue(things: _Things, thing: int) -> _Prior | None:
    """The issue before it, if that kept it; else what its window or its program waited for."""
    start_ps, command = int(things.starts[thing]), int(things.commands[thing])
    if command > 0:
        before = int(things.issues[command - 1])
        if things.ends[before] == start_ps:
            return _Prior(before)
    found = things.ended_at(start_ps, thing)
    if found is not None:
        return _Prior(found)
    found = things.last_end_in(0, start_ps, thing)
    part = "message_wait" if command in things.message_commands else "other"
    return None if found is None else _Prior(found, part)


def _prior_of_work(things: _Things, delays: PathDelays, thing: int) -> _Prior | None:
    """Steps of messages come at once after each other, all else by way of the scheduler."""
    start_ps = int(things.starts[thing])
    waits_ps = [delays.dispatch_ps, 0]
    if things.is_transfer[thing] or int(things.commands[thing]) in things.message_commands:
        waits_ps.reverse()
    for wait_ps in waits_ps:
        found = things.ended_at(start_ps - wait_ps, thing)
        if found is not None:
            return _Prior(found)
    return None


def _prior_of_exchange(things: _Things, delays: PathDelays, thing: int) -> _Prior | None:
    """A packet that made room in the channel; else what the access came after, and a walk."""
    start_ps = int(things.starts[thing])
    if things.under_way(thing) >= delays.window_packets:
        back = things.came_back_at(thing)
        if back is not None:
            return _Prior(back)
    is_message = int(things.commands[thing]) in things.message_commands
    if is_message and (found := things.ended_at(start_ps, thing)) is not None:
        return _Prior(found)
    dispatched_ps = start_ps - delays.dispatch_ps
    for wait_ps in (0, delays.hit_ps, delays.walk_ps):
        found = things.ended_at(dispatched_ps - wait_ps, thing)
        if found is not None:
            return _Prior(found, "translation", delays.dispatch_ps)
    back = things.came_back_at(thing)  # of a channel that other programs of the PE use too
    if back is not None:
        return _Prior(back)
    if is_message:
        return None
    found = things.last_end_in(dispatched_ps - delays.walk_ps, dispatched_ps, thing)
    return None if found is None else _Prior(found, "translation", delays.dispatch_ps)


def _since_issue(things: _Things, thing: int) -> _Prior | None:
    """Nothing of its own ended then: since its issue it waited for another program."""
    issue = things.issue_of(thing)
    part = "message_wait" if int(things.commands[thing]) in things.message_commands else "other"
    return None if issue is None else _Prior(issue, part)
