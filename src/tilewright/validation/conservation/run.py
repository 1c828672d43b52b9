"""Seeded runs of a crowded mesh, and what each of them must obey, checked from its records alone.

No rule knows how an engine works: it reads what was sent, when each link took each packet, and
counts what docs/engine.md forbids.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

from tilewright.engine import (
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    Statistics,
    TaskGraph,
    TraceRecord,
    build_engine,
)
from tilewright.validation.engine_run import FLIT_BYTES, Routes, finish
from tilewright.validation.workload import (
    LinkSpec,
    MeshSpec,
    Message,
    NetworkLoad,
    alone_ps,
    mesh_load,
)

SOURCE = -1
Queue = tuple[int, int]  # input and virtual channel

LARGEST_FLITS = 16
NUM_MESSAGES = 250
SEEDS = (1, 2, 3)
# Space behind each link, and if inputs take turns.
NETWORKS = ((None, False), (32, True), (48, False), (LARGEST_FLITS, True))
NUM_RUNS = len(SEEDS) * len(NETWORKS)


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
class Run:
    """A load whose messages are packets numbered from 0, and what an engine recorded of it."""

    load: NetworkLoad
    records: tuple[TraceRecord, ...]
    statistics: Statistics

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


def _load(buffer_flits: int | None, seed: int, *, takes_turns: bool) -> NetworkLoad:
    """A mesh at 0.9 of its bisection, on two virtual channels."""
    mesh = MeshSpec(4, buffer_flits=buffer_flits, round_robin=takes_turns)
    load = mesh_load(mesh, NUM_MESSAGES, 0.9, seed, flits=(1, LARGEST_FLITS))
    messages = (
        replace(message, channels=(message.message_id % 2,) * len(message.links))
        for message in load.messages
    )
    return NetworkLoad(load.links, tuple(messages))


def _engine_of(load: NetworkLoad, kind: EngineKind) -> tuple[Engine, TaskGraph]:
    """Return an engine that is traced, and the graph of a load on it."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, LARGEST_FLITS))
    routes, graph = Routes(engine, load.links), TaskGraph()
    for message in load.messages:
        route = routes.number(message.links, message.channels)
        graph.transfer(route, message.flits * FLIT_BYTES, message.at_ps)
    engine.set_trace(True)
    return engine, graph


def ports_ps(
    kind: EngineKind, spec: EngineSpec, rate: int, *, ports: int, num_bytes: int, controllers: int
) -> int:
    """Return when ports have sent so much each, dealt to controllers of their own rate."""
    engine = build_engine(kind, spec)
    shared = [engine.add_server(ServerSpec(f"controller{n}", rate)) for n in range(controllers)]
    graph = TaskGraph()
    for port in range(ports):
        link = engine.add_server(ServerSpec(f"port{port}", rate))
        graph.transfer(engine.add_route([link, shared[port % controllers]]), num_bytes)
    return finish(engine, graph)


def crowded_engine(seed: int, kind: EngineKind) -> Engine:
    """One that has been run, with credits."""
    engine, graph = _engine_of(_load(32, seed, takes_turns=True), kind)
    finish(engine, graph)
    return engine


@lru_cache(maxsize=2)
def seeded_runs(kind: EngineKind) -> tuple[Run, ...]:
    runs = []
    for buffer_flits, takes_turns in NETWORKS:
        for seed in SEEDS:
            load = _load(buffer_flits, seed, takes_turns=takes_turns)
            engine, graph = _engine_of(load, kind)
            finish(engine, graph)
            runs.append(Run(load, tuple(engine.take_trace()), engine.statistics()))
    return tuple(runs)


# -- the rules: how often a run breaks them ------------------------------------------------------


def wrong_bytes(run: Run) -> int:
    """IN1: links and routes that carried something else than the load sends over them."""
    expected = [0] * len(run.load.links)
    for message in run.load.messages:
        for link in message.links:
            expected[link] += message.flits * FLIT_BYTES
    servers = zip(run.statistics.servers, expected, strict=True)
    found = sum(server.num_bytes != num_bytes for server, num_bytes in servers)
    return found + sum(route.bytes_in != route.bytes_out for route in run.statistics.routes)


def overused(run: Run) -> int:
    """IN2: links that were used more than fully, as a whole or by two packets at once."""
    servers = run.statistics.servers
    found = sum(not server.busy_ps <= server.held_ps <= server.free_ps for server in servers)
    return found + _count_overlaps(run)


def _count_overlaps(run: Run) -> int:
    """Packets that start before the one in front has left, or leave sooner than a wire can send."""
    found = 0
    for link, visits in zip(run.load.links, run.by_link, strict=True):
        for before, after in pairwise(visits):
            found += after.record.start_ps < before.record.tail_ps
        for visit in visits:
            held_ps = visit.record.tail_ps - visit.record.start_ps
            found += held_ps < visit.message.flits * link.flit_ps
    return found


def too_fast(run: Run) -> int:
    """IN3: done before the slowest link or the longest way allows it."""
    return int(run.statistics.now_ps < least_ps(run.load))


def idle(run: Run) -> int:
    """IN4: times that a free link left a packet that could have started, or took one early."""
    return sum(
        1
        for link, visits in zip(run.load.links, run.by_link, strict=True)
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


def early(run: Run) -> int:
    """IN5: packets that start before they are ready, or are ready before they can have come."""
    found = _count_overlaps(run) + sum(server.wait_ps < 0 for server in run.statistics.servers)
    last: dict[int, TraceRecord] = {}
    for record in run.records:
        found += record.start_ps < record.ready_ps
        before = last.get(record.packet_id)
        if before is not None:
            link = run.load.links[before.server]
            found += record.ready_ps < before.start_ps + link.flit_ps + link.latency_ps
        last[record.packet_id] = record
    return found


def overtaken(run: Run) -> int:
    """IN6: packets that leave a queue before one that was there first."""
    found = 0
    for link, visits in zip(run.load.links, run.by_link, strict=True):
        last: dict[Queue, tuple[int, int]] = {}
        for visit in visits:
            queue = visit.queue(link)
            found += last.get(queue, visit.turn) > visit.turn
            last[queue] = visit.turn
    return found


def wrong_queues(run: Run) -> int:
    """IN10: links whose integral of the queue length is not the sum of their packets' waits."""
    waits_ps = (
        sum(visit.record.start_ps - visit.record.ready_ps for visit in visits)
        for visits in run.by_link
    )
    queues_ps = (server.queue_ps for server in run.statistics.servers)
    return sum(one != other for one, other in zip(queues_ps, waits_ps, strict=True))


def least_ps(load: NetworkLoad) -> int:
    """A floor of the last delivery: every link's work, and every message's way if it were alone."""
    work_ps = [0] * len(load.links)
    longest_ps = 0
    for message in load.messages:
        way = [load.links[number] for number in message.links]
        longest_ps = max(longest_ps, message.at_ps + alone_ps(way, message.flits))
        for number in message.links:
            work_ps[number] += message.flits * load.links[number].flit_ps
    return max(longest_ps, *work_ps)
