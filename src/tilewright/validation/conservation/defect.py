"""Defects to put into a run, one each, that a rule must find."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tilewright.engine import TraceRecord
from tilewright.validation.conservation.run import LoadTrace, Run, least_ps

Defect = Callable[[Run, np.random.Generator], Run]


def _with_record(run: Run, position: int, **changes: int) -> Run:
    records = list(run.trace.records)
    records[position] = records[position]._replace(**changes)
    return replace(run, trace=LoadTrace(run.load, tuple(records)))


def _some(run: Run, generator: np.random.Generator, wanted: Callable[[TraceRecord], bool]) -> int:
    """The position of one of the records that are wanted."""
    places = [place for place, record in enumerate(run.trace.records) if wanted(record)]
    return int(generator.choice(places))


def byte_lost(run: Run, generator: np.random.Generator) -> Run:
    servers = list(run.statistics.servers)
    used = [number for number, server in enumerate(servers) if server.num_bytes]
    number = int(generator.choice(used))
    servers[number] = servers[number]._replace(num_bytes=servers[number].num_bytes - 1)
    return replace(run, statistics=replace(run.statistics, servers=tuple(servers)))


def sent_too_fast(run: Run, generator: np.random.Generator) -> Run:
    """A packet leaves a picosecond before its last flit can have been sent."""
    place = _some(run, generator, lambda record: record.tail_ps > record.start_ps)
    record = run.trace.records[place]
    flits = run.load.messages[record.packet_id].flits
    tail_ps = record.start_ps + flits * run.load.links[record.server].flit_ps - 1
    return _with_record(run, place, tail_ps=tail_ps)


def done_too_soon(run: Run, _generator: np.random.Generator) -> Run:
    sooner = replace(run.statistics, now_ps=least_ps(run.load) - 1)
    return replace(run, statistics=sooner)


def left_idle(run: Run, generator: np.random.Generator) -> Run:
    """The last packet of a link, which could have started, starts a picosecond late."""
    last = [visits[-1].record for visits in run.trace.by_link if visits]
    place = _some(run, generator, lambda record: record in last)
    record = run.trace.records[place]
    return _with_record(run, place, start_ps=record.start_ps + 1, tail_ps=record.tail_ps + 1)


def started_unready(run: Run, generator: np.random.Generator) -> Run:
    place = _some(run, generator, lambda record: record.start_ps == record.ready_ps)
    return _with_record(run, place, start_ps=run.trace.records[place].ready_ps - 1)


def overtook(run: Run, generator: np.random.Generator) -> Run:
    """Two packets that waited in one queue change places."""
    pairs = []
    for link, visits in zip(run.load.links, run.trace.by_link, strict=True):
        neighbours = pairwise(visits)
        pairs += [
            (one.record, other.record)
            for one, other in neighbours
            if one.queue(link) == other.queue(link)
        ]
    before, after = pairs[int(generator.integers(len(pairs)))]
    places = [run.trace.records.index(record) for record in (before, after)]
    later = {"start_ps": after.start_ps, "tail_ps": after.tail_ps}
    sooner = {"start_ps": before.start_ps, "tail_ps": before.tail_ps}
    return _with_record(_with_record(run, places[0], **later), places[1], **sooner)


def wait_forgotten(run: Run, generator: np.random.Generator) -> Run:
    """A packet that waited is said to have come when it started."""
    place = _some(run, generator, lambda record: record.start_ps > record.ready_ps)
    return _with_record(run, place, ready_ps=run.trace.records[place].start_ps)
