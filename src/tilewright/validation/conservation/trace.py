"""What every trace of a network must obey, checked from its records alone.

Nothing here knows how an engine works: it reads what was sent, when each link took each packet,
and counts what docs/engine.md forbids.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tilewright.engine import TraceRecord
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad

SOURCE = -1

Queue = tuple[int, int]  # input and virtual channel


@dataclass(frozen=True, slots=True)
class Visit:
    """A packet on one link of its route."""

    message: Message
    hop: int
    record: TraceRecord
    returns_ps: int | None  # when its credits are back at this link; None: it took none

    @property
    def turn(self) -> tuple[int, int]:
        return self.record.ready_ps, self.record.packet_id

    def queue(self, link: LinkSpec) -> Queue:
        if self.hop == 0:
            return SOURCE, self.message.channels[0]
        came_from = self.message.links[self.hop - 1] if link.round_robin else SOURCE
        return came_from, self.message.channels[self.hop - 1]


@dataclass(frozen=True)
class LoadTrace:
    """A load whose messages are packets numbered from 0, and the records of its run."""

    load: NetworkLoad
    records: tuple[TraceRecord, ...]

    @cached_property
    def by_link(self) -> tuple[tuple[Visit, ...], ...]:
        """The visits of each link in the order in which it took them."""
        messages = {message.message_id: message for message in self.load.messages}
        hops: dict[int, list[TraceRecord]] = defaultdict(list)
        for record in self.records:
            hops[record.packet_id].append(record)
        visits: list[list[Visit]] = [[] for _ in self.load.links]
        for record in self.records:
            message, path = messages[record.packet_id], hops[record.packet_id]
            hop = path.index(record)
            returns_ps = None
            if hop + 1 < len(path):
                credit_ps = self.load.links[record.server].credit_ps
                returns_ps = path[hop + 1].tail_ps + credit_ps
            visits[record.server].append(Visit(message, hop, record, returns_ps))
        starts = [sorted(link, key=lambda visit: visit.record.start_ps) for link in visits]
        return tuple(tuple(link) for link in starts)


def count_overlaps(trace: LoadTrace) -> int:
    """Packets that start before the one in front has left, or leave sooner than a wire can send."""
    found = 0
    for link, visits in zip(trace.load.links, trace.by_link, strict=True):
        for before, after in pairwise(visits):
            found += after.record.start_ps < before.record.tail_ps
        for visit in visits:
            held_ps = visit.record.tail_ps - visit.record.start_ps
            found += held_ps < visit.message.flits * link.flit_ps
    return found


def count_early(trace: LoadTrace) -> int:
    """Packets that start before they are ready, or are ready before they can have come."""
    found = 0
    last: dict[int, TraceRecord] = {}
    for record in trace.records:
        found += record.start_ps < record.ready_ps
        before = last.get(record.packet_id)
        if before is not None:
            link = trace.load.links[before.server]
            found += record.ready_ps < before.start_ps + link.flit_ps + link.latency_ps
        last[record.packet_id] = record
    return found


def count_overtaken(trace: LoadTrace) -> int:
    """Packets that leave a queue before one that was there first."""
    found = 0
    for link, visits in zip(trace.load.links, trace.by_link, strict=True):
        last: dict[Queue, tuple[int, int]] = {}
        for visit in visits:
            queue = visit.queue(link)
            found += last.get(queue, visit.turn) > visit.turn
            last[queue] = visit.turn
    return found


def count_idle(trace: LoadTrace) -> int:
    """Times that a free link did not take a packet that could have started, or took one early."""
    return sum(
        1
        for link, visits in zip(trace.load.links, trace.by_link, strict=True)
        for number, visit in enumerate(visits)
        if min(_could_start_ps(link, visits, number)) != visit.record.start_ps
    )


def _could_start_ps(link: LinkSpec, visits: Sequence[Visit], number: int) -> Iterator[int]:
    """When the first packet of each queue could start, after ``number`` others have been taken."""
    free_ps = visits[number - 1].record.tail_ps if number else 0
    firsts: dict[Queue, Visit] = {}
    for visit in visits[number:]:
        firsts.setdefault(visit.queue(link), visit)
    for first in firsts.values():
        room_ps = _room_ps(link, visits[:number], first, free_ps)
        yield max(first.record.ready_ps, room_ps)


def _room_ps(link: LinkSpec, taken: Sequence[Visit], visit: Visit, free_ps: int) -> int:
    """From when on, not before ``free_ps``, the buffer behind the link has room for a packet."""
    if visit.returns_ps is None or link.buffer_flits is None:
        return free_ps
    channel = visit.message.channels[visit.hop]
    waiting = sorted(
        (other.returns_ps, other.message.flits)
        for other in taken
        if other.returns_ps is not None
        and other.returns_ps > free_ps
        and other.message.channels[other.hop] == channel
    )
    room = link.buffer_flits - sum(flits for _, flits in waiting)
    for returns_ps, flits in waiting:
        if room >= visit.message.flits:
            break
        room, free_ps = room + flits, returns_ps
    return free_ps


def waits_ps(trace: LoadTrace) -> list[int]:
    """What packets waited in front of each link, all together."""
    return [
        sum(visit.record.start_ps - visit.record.ready_ps for visit in visits)
        for visits in trace.by_link
    ]


def least_ps(load: NetworkLoad) -> int:
    """A floor of the last delivery: every link's work, and every message's way if it were alone."""
    work_ps = [0] * len(load.links)
    alone_ps = 0
    for message in load.messages:
        links = [load.links[number] for number in message.links]
        head_ps = sum(link.flit_ps + link.latency_ps for link in links)
        rest_ps = (message.flits - 1) * max(link.flit_ps for link in links)
        alone_ps = max(alone_ps, message.at_ps + head_ps + rest_ps)
        for number in message.links:
            work_ps[number] += message.flits * load.links[number].flit_ps
    return max(alone_ps, *work_ps)
