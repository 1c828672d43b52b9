"""Results of a run: counters, exact ratios of them, records, and the digest that compares runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from tilewright.errors import EngineError


class ServerStatistics(NamedTuple):
    """The counters of one server; ``docs/engine.md`` section 6 defines them."""

    name: str
    packets: int
    num_bytes: int
    busy_ps: int
    held_ps: int
    wait_ps: int
    queue_ps: int
    max_queue: int
    free_ps: int


class RouteStatistics(NamedTuple):
    """The counters of one route."""

    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int


class ChannelCounters(NamedTuple):
    """Counters of a pseudo-channel, in bursts; of a simple memory, in bytes.

    ``busy_ps`` and the five causes of loss add up to ``window_ps``.
    """

    read_bursts: int
    write_bursts: int
    row_hits: int
    row_closed: int
    row_conflicts: int
    busy_ps: int
    idle_ps: int
    refresh_ps: int
    turnaround_ps: int
    bank_group_ps: int
    row_ps: int
    window_ps: int  # from 0 to the end of the last data

    @property
    def num_bursts(self) -> int:
        return self.read_bursts + self.write_bursts


@dataclass(frozen=True)
class Statistics:
    """All counters at one simulated time; equal for both engines, but for ``events``."""

    now_ps: int
    events: int = field(compare=False)  # steps of this core: its own affair
    servers: tuple[ServerStatistics, ...]
    routes: tuple[RouteStatistics, ...]

    def server(self, name: str) -> ServerStatistics:
        found = self._by_name.get(name)
        if found is None:
            fix = "use the name of its ServerSpec"
            raise EngineError("statistics", f"no server {name!r}", "a server of this engine", fix)
        return found

    def utilisation(self, name: str) -> Fraction:
        """Share of the time so far in which the server moved something, at most 1.

        Work that has been given its start counts at once, so the time is that until it is done.
        """
        server = self.server(name)
        return _ratio(server.busy_ps, max(self.now_ps, server.free_ps))

    def mean_wait_ps(self, name: str) -> Fraction:
        """From ready to start, per packet."""
        server = self.server(name)
        return _ratio(server.wait_ps, server.packets)

    def mean_queue(self, name: str) -> Fraction:
        """Packets that wait in front of the server, on average over the time so far."""
        return _ratio(self.server(name).queue_ps, self.now_ps)

    @cached_property
    def _by_name(self) -> dict[str, ServerStatistics]:
        return {server.name: server for server in self.servers}


def _ratio(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


class TraceRecord(NamedTuple):
    """A server took a packet: when it was ready, when it started, when its tail left."""

    server: int
    packet_id: int
    ready_ps: int
    start_ps: int
    tail_ps: int


class MemoryRecord(NamedTuple):
    """A memory knows when an access is done."""

    server: int
    packet_id: int
    decided_ps: int
    done_ps: int
    refresh_ps: int  # of the time that it took, what refresh held it up


def digest_of(completions: Iterable[tuple[int, int]], trace: Iterable[TraceRecord] = ()) -> str:
    """SHA-256 over the sorted (id, completion time) pairs and over the trace in its order.

    >>> digest_of([(1, 250), (0, 500)]) == digest_of([(0, 500), (1, 250)])
    True
    """
    digest = sha256()
    for rows in (sorted(completions), list(trace)):
        digest.update(np.array([len(rows)], "<i8").tobytes())
        digest.update(np.array(rows, "<i8").tobytes())
    return digest.hexdigest()
