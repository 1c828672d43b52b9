"""Ways that packets seldom leave: an engine that simulates them apart shows the same."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.oracles_hbm.loads import specs
from tests.strategies import Choices, Seeded, is_rare, pick, some
from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.engine.core import NO_EFFECT
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec

FLIT_BYTES = 4
PACKET_FLITS = 6
LEAST_BYTES = 400  # of a memory that programs read and write

pytestmark = pytest.mark.timeout(600)  # `make test-all` runs many more examples
many = settings(max_examples=3 * (settings.default.max_examples if settings.default else 100))


@dataclass(frozen=True, slots=True)
class Town:
    """Homes with a memory each, and the ways between them."""

    engine: Engine
    memories: list[int]
    capacity_bytes: int
    trips: dict[tuple[int, int, bool], int]  # from home to home, writes
    messages: dict[tuple[int, int], int]  # routes
    doors: list[int]  # routes of one server, the first on the way out


def build_town(
    source: Choices, kind: EngineKind, memory: BankedSpec | SimpleSpec, salt: int, *, at_home: bool
) -> Town:
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS, salt))
    num_homes = source.integer(1, 3)
    capacity = memory.capacity_bytes if isinstance(memory, BankedSpec) else LEAST_BYTES
    memories = [engine.add_memory(f"memory{n}", memory, capacity) for n in range(num_homes)]
    rate = pick(source, [4_000_000, 2_000_000, 1_000_000])

    def link(name: str) -> int:
        spec = ServerSpec(
            name,
            rate,
            latency_ps=pick(source, [1, 0, 3, 8]),
            buffer_flits=PACKET_FLITS + pick(source, [0, 3, 40]),
            credit_ps=pick(source, [0, 1, 4]),
            arbitration=pick(source, [Arbitration.ROUND_ROBIN, Arbitration.FIFO]),
            reassemble=is_rare(source, 3),
        )
        return engine.add_server(spec)

    names = ("up", "in", "out", "down")
    links = [{name: link(f"{name}{n}") for name in names} for n in range(num_homes)]
    trips: dict[tuple[int, int, bool], int] = {}
    for home, own in enumerate(links):
        gates = [engine.add_gate(pick(source, [1, 3, 8, 40])) for _ in range(2)]
        for other, its in enumerate(links):
            out = engine.add_route([own["up"], its["in"], memories[other]], (home, home, 0))
            back = engine.add_route([its["out"], own["down"]], home)
            for writes in (False, True):
                trips[home, other, writes] = engine.add_round_trip(
                    out, back, gate=gates[writes], writes=writes, is_home=at_home and home == other
                )
    messages = {
        (home, other): engine.add_route([own["up"], its["down"]])
        for home, own in enumerate(links)
        for other, its in enumerate(links)
    }
    doors = [engine.add_route([own["up"]]) for own in links]
    return Town(engine, memories, capacity, trips, messages, doors)


def random_exchange(source: Choices, town: Town, graph: TaskGraph, home: int, effect: int) -> None:
    target = source.integer(0, len(town.memories) - 1) if is_rare(source, 6) else home
    count = pick(source, [1, 1, 2, 3])
    part_bytes = source.integer(1, LEAST_BYTES // 4)
    has_one_before = len(graph) > 0 and is_rare(source, 3)
    graph.exchange(
        town.trips[home, target, is_rare(source, 3)],
        count * part_bytes,
        delay_ps=pick(source, [0, 0, 1, 7, 60]),
        after=(source.integer(0, len(graph) - 1),) if has_one_before else (),
        effect=effect if is_rare(source, 4) else NO_EFFECT,
        served_effect=1000 + effect if is_rare(source, 4) else NO_EFFECT,
        tag=source.integer(0, LEAST_BYTES - 3 * part_bytes),
        segment_bytes=part_bytes if count > 1 else None,
        stride_bytes=pick(source, [0, part_bytes // 2, part_bytes]) if count > 1 else 0,
    )


def random_graph(source: Choices, town: Town, home: int, number: int) -> TaskGraph:
    """Accesses of one home, mostly to itself, and now and then something in their way."""
    graph = TaskGraph()
    for index in range(source.integer(1, 6)):
        kind = source.integer(0, 9)
        delay_ps = source.integer(0, 30)
        if kind == 0:
            other = source.integer(0, len(town.memories) - 1)
            graph.transfer(town.messages[home, other], source.integer(1, 60), delay_ps=delay_ps)
        elif kind == 1:
            graph.hold(town.doors[home], source.integer(1, 20), delay_ps=delay_ps)
        else:
            random_exchange(source, town, graph, home, 10 * number + index)
    if pick(source, [True, True, False]):
        graph.timer(after=tuple(range(len(graph))), effect=5000 + number)
    return graph


def view_of(town: Town) -> tuple[object, ...]:
    engine = town.engine
    statistics = engine.statistics()
    counters = [engine.memory_counters(memory) for memory in town.memories]
    return statistics.servers, statistics.routes, counters


def play(
    seed: int, kind: EngineKind, memory: BankedSpec | SimpleSpec, salt: int, *, at_home: bool = True
) -> tuple[list[object], int]:
    """What a caller sees step by step, and how many events there were."""
    source = Seeded(seed)
    town = build_town(source, kind, memory, salt, at_home=at_home)
    engine, seen, tasks = town.engine, list[object](), list[tuple[TaskGraph, int]]()
    for number in range(source.integer(1, 6)):
        home = source.integer(0, len(town.memories) - 1)
        graph = random_graph(source, town, home, number)
        after: tuple[int, ...] = ()
        if tasks and is_rare(source, 3):
            earlier, first = pick(source, tasks)
            after = (engine.task_id(earlier, first, source.integer(0, len(earlier) - 1)),)
        tasks.append((graph, engine.submit(graph, owner=home, after=after)))
        for earlier, first in some(source, 2, lambda: pick(source, tasks)):
            seen.append(engine.watch(engine.task_id(earlier, first, len(earlier) - 1)))
        if is_rare(source, 3):
            until_ps = engine.now_ps + source.integer(0, 300)
            seen.append(engine.advance(None if is_rare(source, 2) else until_ps))
        if is_rare(source, 12):
            engine.set_trace(pick(source, [True, False]))
        seen += [engine.now_ps, engine.take_effects()]
        if is_rare(source, 3):
            seen.append(view_of(town))
    while wakes := engine.advance():
        seen += [wakes, engine.now_ps, engine.take_effects()]
    engine.run()
    seen += [engine.now_ps, engine.take_effects(), engine.take_trace(), view_of(town)]
    return seen, engine.statistics().events


def large(spec: BankedSpec) -> bool:
    return spec.capacity_bytes >= LEAST_BYTES


@needs_both_engines
@many
@given(seed=st.integers(0, 2**63 - 1), memory=specs().filter(large), salt=st.integers(0, 99))
def test_both_engines_show_the_same_of_homes_with_banked_memories(
    seed: int, memory: BankedSpec, salt: int
) -> None:
    expected, _ = play(seed, EngineKind.REFERENCE, memory, 0)
    assert play(seed, EngineKind.NATIVE, memory, salt)[0] == expected


@needs_both_engines
@many
@given(seed=st.integers(0, 2**63 - 1), latency_ps=st.integers(5, 60), salt=st.integers(0, 99))
def test_both_engines_show_the_same_of_homes_with_simple_memories(
    seed: int, latency_ps: int, salt: int
) -> None:
    memory = SimpleSpec(2, interleave_bytes=8, bytes_per_us=400_000, latency_ps=latency_ps)
    expected, _ = play(seed, EngineKind.REFERENCE, memory, 0)
    assert play(seed, EngineKind.NATIVE, memory, salt)[0] == expected


@needs_both_engines
@many
@given(seed=st.integers(0, 2**63 - 1), memory=specs().filter(large))
def test_a_home_costs_no_events_and_saves_none(seed: int, memory: BankedSpec) -> None:
    apart = play(seed, EngineKind.NATIVE, memory, 0)
    assert apart == play(seed, EngineKind.NATIVE, memory, 0, at_home=False)
