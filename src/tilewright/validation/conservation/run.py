"""Seeded runs of a crowded mesh, and the rules that each of them must obey."""

from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    Statistics,
    TaskGraph,
    build_engine,
)
from tilewright.units import PS_PER_US
from tilewright.validation.conservation.trace import (
    LoadTrace,
    count_early,
    count_idle,
    count_overlaps,
    count_overtaken,
    least_ps,
    waits_ps,
)
from tilewright.validation.workload import MeshSpec, NetworkLoad, mesh_load

FLIT_BYTES = 64
LARGEST_FLITS = 16
NUM_MESSAGES = 250
SEEDS = (1, 2, 3)
# Space behind each link, and if inputs take turns.
NETWORKS = ((None, False), (32, True), (48, False), (LARGEST_FLITS, True))
NUM_RUNS = len(SEEDS) * len(NETWORKS)


@dataclass(frozen=True, slots=True)
class Run:
    """A load, what an engine recorded of it, and when the last packet was there."""

    trace: LoadTrace
    statistics: Statistics

    @property
    def load(self) -> NetworkLoad:
        return self.trace.load


def _load(buffer_flits: int | None, seed: int, *, takes_turns: bool) -> NetworkLoad:
    """A mesh at 0.9 of its bisection, on two virtual channels."""
    mesh = MeshSpec(4, buffer_flits=buffer_flits, round_robin=takes_turns)
    load = mesh_load(mesh, NUM_MESSAGES, 0.9, seed, flits=(1, LARGEST_FLITS))
    messages = (
        replace(message, channels=(message.message_id % 2,) * len(message.links))
        for message in load.messages
    )
    return NetworkLoad(load.links, tuple(messages))


def _engine_of(load: NetworkLoad, kind: EngineKind) -> Engine:
    """An engine that has been given the load, traced and not yet run."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, LARGEST_FLITS))
    for link in load.links:
        turns = Arbitration.ROUND_ROBIN if link.round_robin else Arbitration.FIFO
        rate = FLIT_BYTES * PS_PER_US // link.flit_ps
        server = ServerSpec(
            link.name, rate, link.latency_ps, link.buffer_flits, link.credit_ps, turns
        )
        engine.add_server(server)
    routes: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    graph = TaskGraph()
    for message in load.messages:
        key = (message.links, message.channels)
        if key not in routes:
            routes[key] = engine.add_route(*key)
        graph.transfer(routes[key], message.flits * FLIT_BYTES, message.at_ps)
    engine.set_trace(True)
    engine.submit(graph)
    return engine


def crowded_engine(seed: int, kind: EngineKind) -> Engine:
    """One that has been run, with credits."""
    engine = _engine_of(_load(32, seed, takes_turns=True), kind)
    engine.run()
    return engine


@lru_cache(maxsize=2)
def seeded_runs(kind: EngineKind) -> tuple[Run, ...]:
    runs = []
    for buffer_flits, takes_turns in NETWORKS:
        for seed in SEEDS:
            load = _load(buffer_flits, seed, takes_turns=takes_turns)
            engine = _engine_of(load, kind)
            engine.run()
            trace = LoadTrace(load, tuple(engine.take_trace()))
            runs.append(Run(trace, engine.statistics()))
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
    return found + count_overlaps(run.trace)


def too_fast(run: Run) -> int:
    """IN3: done before the slowest link or the longest way allows it."""
    return int(run.statistics.now_ps < least_ps(run.load))


def idle(run: Run) -> int:
    """IN4."""
    return count_idle(run.trace)


def early(run: Run) -> int:
    """IN5."""
    waits = sum(server.wait_ps < 0 for server in run.statistics.servers)
    return count_early(run.trace) + count_overlaps(run.trace) + waits


def overtaken(run: Run) -> int:
    """IN6."""
    return count_overtaken(run.trace)


def wrong_queues(run: Run) -> int:
    """IN10: links whose integral of the queue length is not the sum of their packets' waits."""
    queues_ps = (server.queue_ps for server in run.statistics.servers)
    return sum(one != other for one, other in zip(queues_ps, waits_ps(run.trace), strict=True))
