"""Network loads on our engines: what the oracles and peers run, through the public interface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np
import numpy.typing as npt

from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    Hub,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.units import PS_PER_US
from tilewright.validation.network import Route
from tilewright.validation.workload import (
    ClosedLoop,
    LinkSpec,
    NetworkLoad,
    request_id,
    response_id,
)

FLIT_BYTES = 64


@dataclass(frozen=True, slots=True)
class PeerRun:
    """Delivery times by message id, and what the run itself cost."""

    delivered_ps: Mapping[int, int]
    seconds: float  # wall time of the run, without building the model
    num_hops: int
    num_events: int  # all that went through the peer's event queue
    check_seconds: float = 0.0  # that the conservation rules of our engines took

    @property
    def events_per_hop(self) -> float:
        return self.num_events / self.num_hops


@cache
def machine_named(preset: str, *overrides: str) -> Machine:
    """Return a machine that oracles share, with what is known of its routes."""
    return build_machine(parse_machine(preset, overrides))


def finish(engine: Engine, graph: TaskGraph) -> int:
    """Run a task graph; return the time at its end in picoseconds."""
    engine.submit(graph)
    engine.run()
    return engine.now_ps


def ends_of(engine: Engine) -> npt.NDArray[np.int64]:
    """Return the end of each effect of a run, whose numbers go from 0 on."""
    times_ps, effects = engine.take_effect_columns()
    return times_ps[np.argsort(effects)]


def transfer_ends(
    engine: Engine,
    routes: npt.NDArray[np.int64],
    num_bytes: npt.NDArray[np.int64],
    delays_ps: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Run transfers, numbered from 0 on, and return the end of each."""
    graph, numbers = TaskGraph(), np.arange(len(delays_ps))
    graph.transfers(routes, num_bytes=num_bytes, delays_ps=delays_ps, effects=numbers)
    finish(engine, graph)
    return ends_of(engine)


def route_over(engine: Engine, *servers: ServerSpec) -> int:
    """Add servers, and return a route over them."""
    return engine.add_route([engine.add_server(server) for server in servers])


def transfer_ps(
    kind: EngineKind,
    servers: Sequence[ServerSpec],
    num_bytes: int,
    spec: EngineSpec = EngineSpec(),  # noqa: B008  # frozen
) -> int:
    """Return the time of a transfer that goes alone over servers, one after the other."""
    engine, graph = build_engine(kind, spec), TaskGraph()
    graph.transfer(route_over(engine, *servers), num_bytes)
    return finish(engine, graph)


def run_open(load: NetworkLoad, kind: EngineKind) -> PeerRun:
    """All messages in one task graph."""
    packet_flits = max(message.flits for message in load.messages)
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, packet_flits))
    routes = Routes(engine, load.links)
    messages = sorted(load.messages, key=lambda message: message.message_id)
    graph = TaskGraph()
    graph.transfers(
        [routes.number(message.links, message.channels) for message in messages],
        num_bytes=[message.flits * FLIT_BYTES for message in messages],
        delays_ps=[message.at_ps for message in messages],
        effects=[message.message_id for message in messages],
    )
    engine.prepare(graph)
    start = perf_counter()
    engine.submit(graph)
    engine.run()
    times, effects = engine.take_effect_columns()
    seconds = perf_counter() - start
    return _result(engine, times, effects, seconds, load.num_hops)


def run_closed(loop: ClosedLoop, kind: EngineKind) -> PeerRun:
    """A greenlet program on every node: each step is one task graph and one wait."""
    largest = max(step.response_flits for steps in loop.programs for step in steps)
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, largest))
    routes = Routes(engine, loop.links)
    hub = Hub(engine)
    for program, steps in enumerate(loop.programs):
        unit = route_over(engine, ServerSpec(f"unit{program}"))
        numbered = [
            (
                routes.round_trip(step.request_links, step.response_links),
                step.response_flits * FLIT_BYTES,
                step.compute_ps,
                request_id(program, index),
                response_id(program, index),
            )
            for index, step in enumerate(steps)
        ]
        hub.spawn(_read_and_compute, hub, unit, numbered)
    start = perf_counter()
    hub.run()
    times, effects = engine.take_effect_columns()
    seconds = perf_counter() - start
    return _result(engine, times, effects, seconds, loop.num_hops)


def _read_and_compute(hub: Hub, unit: int, steps: list[tuple[int, ...]]) -> None:
    for there_and_back, num_bytes, compute_ps, asked_id, got_id in steps:
        graph = TaskGraph()
        got = graph.exchange(there_and_back, num_bytes, effect=got_id, served_effect=asked_id)
        graph.hold(unit, compute_ps, after=(got,))
        hub.perform(graph)


class Routes:
    """Adds links as servers, and each path once as a route."""

    def __init__(self, engine: Engine, links: tuple[LinkSpec, ...]) -> None:
        for link in links:
            engine.add_server(server_of(link))
        self.number = cache(engine.add_route)  # by links and channels
        self._trip = cache(engine.add_round_trip)  # by the numbers of routes

    def round_trip(self, out: Route, back: Route) -> int:
        """Return the number of a way there and back on the first channels."""
        return self._trip(*(self.number(links, (0,) * len(links)) for links in (out, back)))


def server_of(link: LinkSpec) -> ServerSpec:
    return ServerSpec(
        link.name,
        bytes_per_us=-(-FLIT_BYTES * PS_PER_US // link.flit_ps),
        latency_ps=link.latency_ps,
        buffer_flits=link.buffer_flits,
        credit_ps=link.credit_ps,
        arbitration=Arbitration.ROUND_ROBIN if link.round_robin else Arbitration.FIFO,
        reassemble=link.reassemble,
    )


def _result(
    engine: Engine, times: np.ndarray, effects: np.ndarray, seconds: float, num_hops: int
) -> PeerRun:
    start = perf_counter()
    engine.check_rules()
    check_seconds = perf_counter() - start
    delivered_ps = dict(zip(effects.tolist(), times.tolist(), strict=True))
    return PeerRun(delivered_ps, seconds, num_hops, engine.statistics().events, check_seconds)
