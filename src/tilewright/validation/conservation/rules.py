"""Rules that hold in every run, and the defects by which each is shown to fire: IN1 to IN10."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from tilewright.engine import (
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    TraceRecord,
    build_engine,
)
from tilewright.errors import DeadlockError, InternalError
from tilewright.validation.conservation.run import (
    NUM_RUNS,
    SEEDS,
    Run,
    crowded_engine,
    early,
    idle,
    least_ps,
    overtaken,
    overused,
    ports_ps,
    seeded_runs,
    too_fast,
    wrong_bytes,
    wrong_queues,
)
from tilewright.validation.engine_run import finish, transfer_ps
from tilewright.validation.finding import Finding, Row, exact

Defect = Callable[[Run, np.random.Generator], Run]


def _with_record(run: Run, position: int, **changes: int) -> Run:
    records = list(run.records)
    records[position] = records[position]._replace(**changes)
    return replace(run, records=tuple(records))


def _some(run: Run, generator: np.random.Generator, wanted: Callable[[TraceRecord], bool]) -> int:
    """The position of one of the records that are wanted."""
    places = [place for place, record in enumerate(run.records) if wanted(record)]
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
    record = run.records[place]
    flits = run.load.messages[record.packet_id].flits
    tail_ps = record.start_ps + flits * run.load.links[record.server].flit_ps - 1
    return _with_record(run, place, tail_ps=tail_ps)


def done_too_soon(run: Run, _generator: np.random.Generator) -> Run:
    sooner = replace(run.statistics, now_ps=least_ps(run.load) - 1)
    return replace(run, statistics=sooner)


def left_idle(run: Run, generator: np.random.Generator) -> Run:
    """The last packet of a link, which could have started, starts a picosecond late."""
    last = [visits[-1].record for visits in run.by_link if visits]
    place = _some(run, generator, lambda record: record in last)
    record = run.records[place]
    return _with_record(run, place, start_ps=record.start_ps + 1, tail_ps=record.tail_ps + 1)


def started_unready(run: Run, generator: np.random.Generator) -> Run:
    place = _some(run, generator, lambda record: record.start_ps == record.ready_ps)
    return _with_record(run, place, start_ps=run.records[place].ready_ps - 1)


def overtook(run: Run, generator: np.random.Generator) -> Run:
    """Two packets that waited in one queue change places."""
    pairs = []
    for link, visits in zip(run.load.links, run.by_link, strict=True):
        neighbours = pairwise(visits)
        pairs += [
            (one.record, other.record)
            for one, other in neighbours
            if one.queue(link) == other.queue(link)
        ]
    before, after = pairs[int(generator.integers(len(pairs)))]
    places = [run.records.index(record) for record in (before, after)]
    later = {"start_ps": after.start_ps, "tail_ps": after.tail_ps}
    sooner = {"start_ps": before.start_ps, "tail_ps": before.tail_ps}
    return _with_record(_with_record(run, places[0], **later), places[1], **sooner)


def wait_forgotten(run: Run, generator: np.random.Generator) -> Run:
    """A packet that waited is said to have come when it started."""
    place = _some(run, generator, lambda record: record.start_ps > record.ready_ps)
    return _with_record(run, place, ready_ps=run.records[place].start_ps)


FLIT_BYTES = 64
PACKET_FLITS = 16
RATE = 64_000  # a flit takes a nanosecond

RunRule = Callable[[Run], int]


def check_holds(kind: EngineKind, *, rule: RunRule) -> Finding:
    return exact(0, sum(rule(run) for run in seeded_runs(kind)), "times")


def check_fires(kind: EngineKind, *, rule: RunRule, defect: Defect) -> Finding:
    """Runs with one defect each: how many of them the rule finds."""
    generator = np.random.default_rng(1)
    found = sum(rule(defect(run, generator)) > 0 for run in seeded_runs(kind))
    return exact(NUM_RUNS, found, "defects")


def check_engine_fires(kind: EngineKind, *, counter: str, amount: int) -> Finding:
    """The same for the engine's own check, whose counters are broken on purpose."""
    found = 0
    for seed in SEEDS:
        engine = crowded_engine(seed, kind)
        servers = engine.statistics().servers
        number = max(range(len(servers)), key=lambda each: servers[each].busy_ps)
        engine.core.tamper(number, counter, amount)
        try:
            engine.statistics()
        except InternalError:
            found += 1
    return exact(len(SEEDS), found, "defects")


# -- rules about more than one run ---------------------------------------------------------------


def _breaks_share(ports: int, packets: int, controllers: int, kind: EngineKind) -> bool:
    """If ports of one flit a cycle, dealt to such controllers, get more than one of these has."""
    spec, flits = EngineSpec(FLIT_BYTES, PACKET_FLITS), packets * PACKET_FLITS
    num_bytes = flits * FLIT_BYTES
    end_ps = ports_ps(kind, spec, RATE, ports=ports, num_bytes=num_bytes, controllers=controllers)
    return end_ps < ports * flits * 1_000


def check_shared_end(kind: EngineKind, *, controllers: int) -> Finding:
    """IN7: with one controller nobody gets more than it has; with one a port, the rule fires."""
    cases = [(ports, packets) for ports in (2, 3, 7) for packets in (1, 10, 50)]
    found = sum(_breaks_share(*case, controllers, kind) for case in cases)
    return exact(0 if controllers == 1 else len(cases), found, "cases")


def check_deadlock(kind: EngineKind) -> Finding:
    """A task that waits for a signal nobody raises: is it reported, with what it waits for?"""
    engine = build_engine(kind)
    signal = engine.add_signal("never")
    graph = TaskGraph()
    graph.timer(waits=((signal, 1),))
    is_told = False
    try:
        finish(engine, graph)
    except DeadlockError as error:
        is_told = any("never" in waiter for waiter in error.waiters)
    return exact(1, int(is_told), "deadlocks")


def check_drained(kind: EngineKind) -> Finding:
    """IN8: packets still under way when a run is over."""
    routes = [route for run in seeded_runs(kind) for route in run.statistics.routes]
    left = sum(route.packets_in - route.packets_out for route in routes)
    return exact(0, left, "packets")


def _path_ps(rate: int, num_bytes: int, kind: EngineKind) -> int:
    links = [ServerSpec(f"link{n}", rate * (n + 1), 700) for n in range(3)]
    return transfer_ps(kind, links, num_bytes)


def count_rises(times: list[int]) -> int:
    """Steps of a series that should never rise."""
    return sum(later > earlier for earlier, later in pairwise(times))


def check_monotone(kind: EngineKind, *, backwards: bool) -> Finding:
    """IN9: more bandwidth and less traffic, step by step; read backwards, every step is wrong."""
    faster = [_path_ps(rate, 10**6, kind) for rate in range(20_000, 400_000, 20_000)]
    lighter = [_path_ps(100_000, num_bytes, kind) for num_bytes in range(10**6, 0, -50_000)]
    series = [times[::-1] if backwards else times for times in (faster, lighter)]
    steps = len(faster) + len(lighter) - 2
    rises = sum(map(count_rises, series))
    return exact(steps if backwards else 0, rises, "steps")


# -- the table -----------------------------------------------------------------------------------


def oracles() -> Iterator[Row]:
    for law, what, rule, defect in (
        ("IN1", "wrong bytes", wrong_bytes, byte_lost),
        ("IN2", "overused links", overused, sent_too_fast),
        ("IN3", "beaten floors", too_fast, done_too_soon),
        ("IN4", "idle links with work", idle, left_idle),
        ("IN5", "packets ahead of time", early, started_unready),
        ("IN6", "overtaken packets", overtaken, overtook),
        ("IN10", "wrong queue integrals", wrong_queues, wait_forgotten),
    ):
        yield f"{law} {what} in {NUM_RUNS} runs", partial(check_holds, rule=rule)
        yield f"{law} {what}: defects found", partial(check_fires, rule=rule, defect=defect)
    yield "IN7 shares of one controller", partial(check_shared_end, controllers=1)
    yield "IN7 a controller too many: defects found", partial(check_shared_end, controllers=2)
    yield f"IN8 packets left in {NUM_RUNS} runs", check_drained
    yield "IN8 deadlock found and named", check_deadlock
    yield "IN9 time that rises", partial(check_monotone, backwards=False)
    yield "IN9 time that rises: defects found", partial(check_monotone, backwards=True)
    for law, counter, amount in (
        ("IN1", "num_bytes", 1),
        ("IN2", "busy_ps", 10**9),
        ("IN2", "stretch_ps", -(10**9)),
        ("IN5", "wait_ps", -(10**12)),
        ("IN8", "credits", -1),
        ("IN10", "queue_ps", 1),
    ):
        check = partial(check_engine_fires, counter=counter, amount=amount)
        yield f"{law} engine's own check of {counter}: defects found", check
