"""Random programs for engines: small, crowded and full of ties.

A program is built from choices. Seeds make them quick and even; hypothesis makes them slower and
clustered, but shrinks a program that fails to its essence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

from tests.engine_programs import (
    FLIT_BYTES,
    NO_EFFECT,
    Advance,
    GraphPlan,
    Hop,
    Pair,
    Program,
    RaiseSignal,
    ServerPlan,
    ServicePlan,
    Step,
    Submit,
    TaskPlan,
    TripPlan,
    Watch,
)
from tilewright.engine.core import LAST_PS

__all__ = (
    "Choices",
    "Seeded",
    "choices",
    "drawn_programs",
    "exchange_programs",
    "is_rare",
    "pick",
    "random_program",
    "seeded_programs",
    "some",
)

MAX_SERVERS = 5
MAX_ROUTES = 6
MAX_HOPS = 5
MAX_GRAPHS = 3
MAX_TASKS = 8
MAX_PACKETS = 5
MAX_SIGNALS = 2
MAX_SUBMITS = 5

Value = TypeVar("Value")


class Choices(Protocol):
    """Where randomness comes from: integers, both ends included."""

    def integer(self, low: int, high: int) -> int: ...


class Seeded:
    """Evenly, by a generator of its own."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))


@dataclass(frozen=True, slots=True)
class Drawn:
    """By hypothesis, which then can shrink them."""

    draw: st.DrawFn

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


def pick(choices: Choices, options: Sequence[Value]) -> Value:
    return options[choices.integer(0, len(options) - 1)]


def some(choices: Choices, most: int, make: Callable[[], Value], *, least: int = 0) -> list[Value]:
    return [make() for _ in range(choices.integer(least, most))]


def is_rare(choices: Choices, one_in: int) -> bool:
    return choices.integer(0, one_in - 1) == one_in // 2  # hypothesis likes the ends of a range


def random_service(choices: Choices, *, has_wire: bool) -> ServicePlan:
    least_ps = 0 if has_wire else 1
    return ServicePlan(
        extra_ps=tuple(some(choices, 3, lambda: choices.integer(0, 6), least=1)),
        latencies_ps=tuple(some(choices, 2, lambda: choices.integer(least_ps, 9), least=1)),
        fails_at=choices.integer(0, 8) if is_rare(choices, 40) else None,
        lies_at=choices.integer(0, 8) if is_rare(choices, 40) else None,
    )


def random_server(choices: Choices, packet_flits: int) -> ServerPlan:
    flit_ps = pick(choices, [1, 5, 2, 1, 3, 1, None])
    spare_flits = pick(choices, [None, 0, 0, 1, packet_flits, None])
    has_service = choices.integer(0, 3) == 3
    return ServerPlan(
        flit_ps=flit_ps,
        latency_ps=pick(choices, [0, 0, 1, 2, 5]),
        buffer_flits=None if spare_flits is None else packet_flits + spare_flits,
        credit_ps=pick(choices, [0, 0, 1, 4]),
        round_robin=pick(choices, [False, True]),
        reassemble=pick(choices, [False, False, True]),
        service=random_service(choices, has_wire=flit_ps is not None) if has_service else None,
    )


def random_path(choices: Choices, servers: Sequence[int], num_channels: int) -> tuple[Hop, ...]:
    def hop() -> Hop:
        return pick(choices, servers), choices.integer(0, num_channels - 1)

    return tuple(some(choices, MAX_HOPS, hop, least=1))


def one_way(path: Sequence[Hop]) -> tuple[Hop, ...]:
    """Through each server once and by rising numbers: such routes cannot deadlock."""
    return tuple(sorted(dict(path).items()))


@dataclass(frozen=True, slots=True)
class Ground:
    """What tasks stand on: routes to send over and to hold, signals, the size of a packet."""

    sends: Sequence[int]
    holds: Sequence[int]
    num_signals: int
    packet_flits: int
    num_trips: int = 0


def random_task(choices: Choices, ground: Ground, graph: int, index: int) -> TaskPlan:
    route: int | None = None
    num_bytes: int | None = None
    hold_ps: int | None = None
    round_trip: int | None = None
    segment_bytes: int | None = None
    kind = pick(choices, ["timer", "hold", "send", "send", "send", "send"])
    if is_rare(choices, 8):
        return TaskPlan(earlier=(choices.integer(0, 9), choices.integer(0, 9)))
    if kind == "send" and ground.num_trips and choices.integer(0, 2):
        round_trip = choices.integer(0, ground.num_trips - 1)
        num_bytes = choices.integer(1, MAX_PACKETS * ground.packet_flits * FLIT_BYTES)
        if choices.integer(0, 2) == 0:
            segment_bytes = choices.integer(1, 2 * ground.packet_flits * FLIT_BYTES)
            num_bytes = segment_bytes * choices.integer(1, MAX_PACKETS)
    elif kind == "send" and ground.sends:
        route = pick(choices, ground.sends)
        num_bytes = choices.integer(1, MAX_PACKETS * ground.packet_flits * FLIT_BYTES)
    elif kind == "hold" and ground.holds:
        route = pick(choices, ground.holds)
        hold_ps = choices.integer(1, 9)

    def pair() -> Pair:
        return choices.integer(0, ground.num_signals - 1), choices.integer(1, 3)

    num_waits = pick(choices, [0, 0, 0, 0, 1, 2]) if ground.num_signals else 0
    num_raises = pick(choices, [0, 1, 2]) if ground.num_signals else 0
    far_ps = LAST_PS - choices.integer(0, 30) if is_rare(choices, 1000) else 0
    return TaskPlan(
        route=route,
        round_trip=round_trip,
        num_bytes=num_bytes,
        hold_ps=hold_ps,
        delay_ps=far_ps or pick(choices, [0, 0, 0, 1, 2, 7]),
        after=tuple(some(choices, 2, lambda: choices.integer(0, index - 1)) if index else ()),
        waits=tuple(pair() for _ in range(num_waits)),
        raises=tuple(pair() for _ in range(num_raises)),
        effect=pick(choices, [MAX_TASKS * graph + index] * 2 + [NO_EFFECT]),
        served_effect=NO_EFFECT if round_trip is None else pick(choices, [NO_EFFECT, 900 + index]),
        tag=choices.integer(0, 3),
        segment_bytes=segment_bytes,
        stride_bytes=0 if segment_bytes is None else choices.integer(-20, 40),
    )


def random_steps(
    choices: Choices, graphs: Sequence[GraphPlan], num_signals: int
) -> tuple[Step, ...]:
    """Submissions with something in between: time, watches, signals."""
    steps: list[Step] = []
    submitted: list[GraphPlan] = []

    def place() -> tuple[int, int]:
        submission = choices.integer(0, len(submitted) - 1)
        return submission, choices.integer(0, len(submitted[submission]) - 1)

    def between() -> Step:
        kind = pick(choices, ["advance", "watch", "signal"])
        if kind == "watch":
            return Watch(*place())
        if kind == "signal" and num_signals:
            return RaiseSignal(choices.integer(0, num_signals - 1), choices.integer(1, 3))
        return Advance(pick(choices, [0, 0, 1, 1, 2, 3, 5, 9, 15, 30, None]))

    for _ in range(choices.integer(1, MAX_SUBMITS)):
        graph = choices.integer(0, len(graphs) - 1)
        num_afters = pick(choices, [0, 0, 1, 2]) if submitted else 0
        after = tuple(place() for _ in range(num_afters))
        steps.append(Submit(graph, choices.integer(0, 3), after))
        submitted.append(graphs[graph])
        steps += some(choices, 3, between)
    return tuple(steps)


def random_trips(choices: Choices, num_routes: int) -> tuple[tuple[int, ...], tuple[TripPlan, ...]]:
    gates = tuple(some(choices, 2, lambda: choices.integer(1, 4)))

    def trip() -> TripPlan:
        out, back = (choices.integer(0, num_routes - 1) for _ in range(2))
        gate = choices.integer(-1, len(gates) - 1)
        writes, is_home = pick(choices, [False, True]), pick(choices, [False, True])
        crossed = (out + 2 * back) % num_routes  # not drawn: programs of known seeds stay the same
        inside = None if crossed == out or writes else crossed
        return TripPlan(out, back, None if gate < 0 else gate, writes, is_home, inside)

    return gates, tuple(some(choices, 3, trip, least=1)) if num_routes else ()


def random_program(choices: Choices, *, with_exchanges: bool = False) -> Program:
    packet_flits = choices.integer(1, 4)
    servers = some(choices, MAX_SERVERS, lambda: random_server(choices, packet_flits), least=1)
    through = [index for index, server in enumerate(servers) if server.takes_packets]
    num_channels = choices.integer(1, 3)
    routes: list[tuple[Hop, ...]] = []
    if through:
        num_routes = choices.integer(1, MAX_ROUTES)
        routes = [random_path(choices, through, num_channels) for _ in range(num_routes)]
    if choices.integer(0, 3):
        routes = [one_way(route) for route in routes]
    num_sends = len(routes)
    for server in some(choices, 2, lambda: choices.integer(0, len(servers) - 1)):
        routes.append(((server, choices.integer(0, num_channels - 1)),))
    holds = [index for index, route in enumerate(routes) if len(route) == 1]
    gates, trips = random_trips(choices, num_sends) if with_exchanges else ((), ())
    num_signals = choices.integer(0, MAX_SIGNALS)
    ground = Ground(range(num_sends), holds, num_signals, packet_flits, len(trips))
    graphs = [
        tuple(
            random_task(choices, ground, graph, index)
            for index in range(choices.integer(1, MAX_TASKS))
        )
        for graph in range(choices.integer(1, MAX_GRAPHS))
    ]
    return Program(
        servers=tuple(servers),
        routes=tuple(routes),
        graphs=tuple(graphs),
        steps=random_steps(choices, graphs, ground.num_signals),
        num_signals=ground.num_signals,
        packet_flits=packet_flits,
        gates=gates,
        round_trips=trips,
        is_traced=not any(trip.is_home for trip in trips) or is_rare(choices, 4),
        raises_all=choices.integer(0, 4) > 0,
    )


choices: st.SearchStrategy[Choices] = st.integers(0, 2**63 - 1).map(Seeded)
seeded_programs = choices.map(random_program)
exchange_programs = choices.map(lambda source: random_program(source, with_exchanges=True))


@st.composite
def drawn_programs(draw: st.DrawFn) -> Program:
    return random_program(Drawn(draw), with_exchanges=draw(st.booleans()))
