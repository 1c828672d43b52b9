"""Random programs of everything that an engine has: memories, homes, hubs, far times.

``whole_program(Seeded(n))`` is program ``n`` of the comparison of both engines. With choices that
hypothesis draws, a program that fails shrinks to its essence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.engine_programs import (
    FLIT_BYTES,
    NO_EFFECT,
    Advance,
    GraphPlan,
    Hop,
    MemorySpec,
    Pair,
    Perform,
    Program,
    RaiseSignal,
    ServerPlan,
    SetTrace,
    Step,
    TaskPlan,
    TripPlan,
    Watch,
)
from tests.strategies import (
    Choices,
    Drawn,
    is_rare,
    one_way,
    pick,
    random_server,
    random_steps,
    some,
)
from tests.strategies import choices as choices_of_seeds
from tilewright.engine.dram.spec import (
    BankedRefreshSpec,
    BankedSpec,
    BankedTimingSpec,
    RefreshScope,
    SimpleSpec,
)
from tilewright.limits import MapField

__all__ = ("drawn_whole_programs", "whole_program", "whole_programs")

MAX_LINKS = 4
MAX_MEMORIES = 2
MAX_PACKETS = 4
MAX_TASKS = 6
BURST_BYTES = 4
MAPS: tuple[tuple[MapField, ...], ...] = (
    ("burst", "bank_group", "column", "bank", "stack_id", "row"),
    ("burst", "column", "bank_group", "bank", "stack_id", "row"),
)


def random_timing(choices: Choices) -> BankedTimingSpec:
    def short() -> int:
        return choices.integer(0, 5)

    def long() -> int:
        return choices.integer(0, 20)

    def some_ps() -> int:
        return choices.integer(1, 4)

    return BankedTimingSpec(
        bl_ps=some_ps(), cl_ps=long(), cwl_ps=long(), rcd_read_ps=long(), rcd_write_ps=long(),
        rp_ps=long(), ras_ps=long(), rc_ps=long() + short(), ccd_s_ps=some_ps(),
        ccd_l_ps=some_ps() + short(), ccd_r_ps=some_ps(), rrd_s_ps=short(), rrd_l_ps=short(),
        faw_ps=long(), wtr_s_ps=short(), wtr_l_ps=long(), rtw_ps=long(), wr_ps=long(),
        rtp_ps=some_ps(),
    )  # fmt: skip


def random_refresh(choices: Choices, timing: BankedTimingSpec) -> BankedRefreshSpec | None:
    scope = pick(choices, [None, RefreshScope.ALL_BANKS, RefreshScope.ONE_BANK])
    if scope is None:
        return None
    close_ps = timing.ras_ps + timing.rtp_ps + timing.write_end_ps + timing.wr_ps
    open_ps = timing.rp_ps + timing.rc_ps + timing.faw_ps + timing.rrd_l_ps + timing.rrd_s_ps
    busy_ps = choices.integer(1, 40)
    least_ps = close_ps + open_ps + timing.rcd_read_ps + timing.rcd_write_ps + busy_ps
    interval_ps = least_ps + choices.integer(1, 100)
    return BankedRefreshSpec(scope, interval_ps, choices.integer(0, interval_ps), busy_ps)


def random_memory(choices: Choices) -> MemorySpec:
    """Of few banks and short queues, so that everything happens soon."""
    if choices.integer(0, 3) == 0:
        return SimpleSpec(
            pseudo_channels=choices.integer(1, 2),
            interleave_bytes=pick(choices, [8, 16]),
            bytes_per_us=pick(choices, [4_000_000, 8_000_000, 1_000_000]),
            latency_ps=pick(choices, [0, 1, 5, 20]),
        )
    timing = random_timing(choices)
    write_queue = choices.integer(9, 20)
    high = choices.integer(1, write_queue)
    return BankedSpec(
        pseudo_channels=choices.integer(1, 2),
        stack_ids=choices.integer(1, 2),
        bank_groups=pick(choices, [1, 2]),
        banks=pick(choices, [1, 2]),
        rows=8,
        row_bytes=8 * BURST_BYTES,
        burst_bytes=BURST_BYTES,
        interleave_bytes=pick(choices, [1, 2, 4, 8]) * BURST_BYTES,
        address_map=pick(choices, MAPS),
        read_queue_bursts=choices.integer(9, 20),
        write_queue_bursts=write_queue,
        drain_high_bursts=high,
        drain_low_bursts=choices.integer(0, high - 1),
        timing=timing,
        refresh=random_refresh(choices, timing),
    )


@dataclass(frozen=True, slots=True)
class Ground:
    """Parts that tasks use: servers, routes with what they can do, trips, signals."""

    servers: Sequence[ServerPlan]
    routes: Sequence[tuple[Hop, ...]]
    trips: Sequence[TripPlan]
    num_signals: int
    packet_flits: int

    @property
    def packet_bytes(self) -> int:
        return self.packet_flits * FLIT_BYTES

    @property
    def senders(self) -> list[int]:
        """Routes of servers that packets can cross or end in."""
        return [
            number
            for number, route in enumerate(self.routes)
            if all(
                self.servers[server].takes_packets or self.servers[server].memory is not None
                for server, _ in route
            )
        ]

    @property
    def holders(self) -> list[int]:
        """Routes of one server that is no memory."""
        return [
            number
            for number, route in enumerate(self.routes)
            if len(route) == 1 and self.servers[route[0][0]].memory is None
        ]

    def room_bytes(self, route: int) -> int | None:
        """Size of the memory in which a route ends, if it does."""
        last = self.servers[self.routes[route][-1][0]]
        return None if last.memory is None else last.capacity_bytes


def random_tag(choices: Choices, room_bytes: int | None, reach_bytes: int) -> int:
    """An address from which so many bytes lie inside of the memory."""
    if room_bytes is None:
        return choices.integer(0, 3)
    return choices.integer(0, min(room_bytes - reach_bytes, pick(choices, [40, 10**6])))


def random_access(choices: Choices, ground: Ground, index: int) -> TaskPlan:
    number = choices.integer(0, len(ground.trips) - 1)
    num_bytes = choices.integer(1, MAX_PACKETS * ground.packet_bytes)
    segment_bytes, stride_bytes, reach_bytes = None, 0, num_bytes
    if choices.integer(0, 3) == 0:
        segment_bytes = choices.integer(1, 2 * ground.packet_bytes)
        count = choices.integer(1, MAX_PACKETS)
        stride_bytes = choices.integer(0, 40)
        num_bytes, reach_bytes = segment_bytes * count, segment_bytes + stride_bytes * (count - 1)
    return TaskPlan(
        round_trip=number,
        num_bytes=num_bytes,
        served_effect=pick(choices, [NO_EFFECT, 900 + index]),
        tag=random_tag(choices, ground.room_bytes(ground.trips[number].out), reach_bytes),
        segment_bytes=segment_bytes,
        stride_bytes=stride_bytes,
    )


def random_work(choices: Choices, ground: Ground, index: int) -> TaskPlan:
    """What a task does, without what it waits for."""
    senders, holders = ground.senders, ground.holders
    kind = pick(choices, ["access", "access", "access", "send", "send", "hold", "timer"])
    if kind == "access" and ground.trips:
        return random_access(choices, ground, index)
    if kind == "hold" and holders:
        hold_ps = random_far(choices) if is_rare(choices, 100) else choices.integer(1, 9)
        return TaskPlan(route=pick(choices, holders), hold_ps=hold_ps)
    if kind != "timer" and senders:
        route = pick(choices, senders)
        num_bytes = choices.integer(1, MAX_PACKETS * ground.packet_bytes)
        tag = random_tag(choices, ground.room_bytes(route), num_bytes)
        return TaskPlan(route=route, num_bytes=num_bytes, tag=tag)
    return TaskPlan()


def random_task(choices: Choices, ground: Ground, graph: int, index: int) -> TaskPlan:
    if is_rare(choices, 12):
        return TaskPlan(earlier=(choices.integer(0, 9), choices.integer(0, 9)))

    def pair() -> Pair:
        return choices.integer(0, ground.num_signals - 1), choices.integer(1, 3)

    num_waits = pick(choices, [0, 0, 0, 0, 1, 2]) if ground.num_signals else 0
    num_raises = pick(choices, [0, 1, 2]) if ground.num_signals else 0
    return replace(
        random_work(choices, ground, index),
        delay_ps=random_delay(choices),
        after=tuple(some(choices, 2, lambda: choices.integer(0, index - 1)) if index else ()),
        waits=tuple(pair() for _ in range(num_waits)),
        raises=tuple(pair() for _ in range(num_raises)),
        effect=pick(choices, [MAX_TASKS * graph + index, NO_EFFECT]),
    )


def random_far(choices: Choices) -> int:
    """A time that is near the end of all times, or half or a quarter of that."""
    return (1 << choices.integer(60, 62)) - choices.integer(0, 60)


def random_delay(choices: Choices) -> int:
    if is_rare(choices, 200):
        return random_far(choices)
    return pick(choices, [0, 0, 0, 1, 2, 7, 20])


def random_link(choices: Choices, packet_flits: int) -> ServerPlan:
    link = random_server(choices, packet_flits)
    if not is_rare(choices, 150):
        return link
    if choices.integer(0, 1):
        return replace(link, credit_ps=random_far(choices))
    return replace(link, latency_ps=random_far(choices))


def random_routes(choices: Choices, servers: Sequence[ServerPlan]) -> list[tuple[Hop, ...]]:
    """Over links, to memories and not, by rising numbers of servers in most programs."""
    through = [index for index, server in enumerate(servers) if server.takes_packets]
    ends = [index for index, server in enumerate(servers) if server.memory is not None]
    num_channels = choices.integer(1, 2)
    goes_one_way = choices.integer(0, 3) > 0

    def hop() -> Hop:
        return pick(choices, through), choices.integer(0, num_channels - 1)

    def route() -> tuple[Hop, ...]:
        path = tuple(some(choices, 3, hop)) if through else ()
        path = one_way(path) if goes_one_way else path
        if ends and (not path or choices.integer(0, 1)):
            return (*path, (pick(choices, ends), choices.integer(0, num_channels - 1)))
        return path or (hop(),)

    routes = some(choices, 6, route, least=2) if through or ends else []
    for server in some(choices, 2, lambda: choices.integer(0, len(servers) - 1)):
        routes.append(((server, 0),))
    return routes


def random_trips(choices: Choices, ground: Ground) -> tuple[tuple[int, ...], tuple[TripPlan, ...]]:
    """Round trips, mostly to memories; few of them cross something inside."""
    gates = tuple(some(choices, 2, lambda: choices.integer(1, 4)))
    senders = ground.senders
    to_memory = [route for route in senders if ground.room_bytes(route) is not None]
    others = [route for route in senders if route not in to_memory]

    def trip() -> TripPlan:
        out = pick(choices, to_memory if to_memory and choices.integer(0, 3) else senders)
        back = pick(choices, others)
        gate = choices.integer(-1, len(gates) - 1)
        writes, is_home = pick(choices, [False, True]), pick(choices, [False, True])
        inside = None
        if not writes and is_rare(choices, 4):
            inside = pick(choices, others)
        return TripPlan(
            out,
            back,
            None if gate < 0 else gate,
            writes=writes,
            is_home=is_home,
            inside=None if inside == out else inside,
        )

    return gates, tuple(some(choices, 4, trip, least=1)) if others else ()


def random_hub_steps(choices: Choices, num_graphs: int, num_signals: int) -> tuple[Step, ...]:
    def step() -> Step:
        kind = pick(choices, ["perform", "perform", "sleep", "wait", "signal"])
        if kind == "wait":
            return Watch(choices.integer(0, 9), choices.integer(0, 9))
        if kind == "signal" and num_signals:
            return RaiseSignal(choices.integer(0, num_signals - 1), choices.integer(1, 3))
        if kind == "sleep":
            return Advance(choices.integer(0, 20))
        return Perform(choices.integer(0, num_graphs - 1))

    return tuple(some(choices, 4, step, least=1))


def with_traces(choices: Choices, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps with a trace that begins or ends in between, in few programs."""
    if not is_rare(choices, 6):
        return steps
    place = choices.integer(0, len(steps))
    return (*steps[:place], SetTrace(pick(choices, [True, False])), *steps[place:])


def whole_program(choices: Choices) -> Program:
    """One random program; the same choices make the same program."""
    packet_flits = choices.integer(1, 4)
    links = some(choices, MAX_LINKS, lambda: random_link(choices, packet_flits), least=1)
    memories = some(choices, MAX_MEMORIES, lambda: ServerPlan(memory=random_memory(choices)))
    servers = links
    for memory in memories:  # anywhere among the links, since numbers decide ties
        servers.insert(choices.integer(0, len(servers)), memory)
    ground = Ground(servers, random_routes(choices, servers), (), 0, packet_flits)
    gates, trips = random_trips(choices, ground) if ground.senders else ((), ())
    ground = replace(ground, trips=trips, num_signals=choices.integer(0, 2))
    graphs: list[GraphPlan] = [
        tuple(
            random_task(choices, ground, graph, index)
            for index in range(choices.integer(1, MAX_TASKS))
        )
        for graph in range(choices.integer(1, 3))
    ]
    hub_steps: tuple[tuple[Step, ...], ...] = ()
    if choices.integer(0, 3) == 0:
        num_signals = ground.num_signals
        hub_steps = tuple(
            random_hub_steps(choices, len(graphs), num_signals)
            for _ in range(choices.integer(1, 3))
        )
    has_homes = any(trip.is_home for trip in trips)
    return Program(
        servers=tuple(servers),
        routes=tuple(ground.routes),
        graphs=tuple(graphs),
        steps=with_traces(choices, random_steps(choices, graphs, ground.num_signals)),
        num_signals=ground.num_signals,
        packet_flits=packet_flits,
        gates=gates,
        round_trips=trips,
        is_traced=not has_homes or is_rare(choices, 3),
        raises_all=choices.integer(0, 4) > 0,
        hub_steps=hub_steps,
    )


whole_programs = choices_of_seeds.map(whole_program)


@st.composite
def drawn_whole_programs(draw: st.DrawFn) -> Program:
    return whole_program(Drawn(draw))
