"""What the reference core counts later than it happens, read in the middle of a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import ENGINES
from tilewright.engine import (
    EngineKind,
    EngineSpec,
    ServerSpec,
    Statistics,
    TaskGraph,
    build_engine,
)
from tilewright.engine.reference import core, network

RATE = 64_000  # a flit of 64 bytes in a nanosecond
TRANSFERS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 500), st.integers(0, 9_000)), min_size=1
)


def statistics_at(
    kind: EngineKind, transfers: list[tuple[int, int, int]], stops: list[int]
) -> list[Statistics]:
    engine = build_engine(kind, EngineSpec(packet_flits=4))
    for name in ("first", "second"):
        engine.add_server(ServerSpec(name, bytes_per_us=RATE, latency_ps=300))
    routes = [engine.add_route(["first", "second"]), engine.add_route(["second"])]
    graph = TaskGraph()
    for route, num_bytes, delay_ps in transfers:
        graph.transfer(routes[route], num_bytes, delay_ps=delay_ps)
    engine.submit(graph)
    found = []
    for stop_ps in sorted(stops):
        engine.advance(until_ps=stop_ps)
        found.append(engine.statistics())
    engine.run()
    return [*found, engine.statistics()]


@pytest.mark.parametrize("kind", ENGINES)
@given(TRANSFERS, st.lists(st.integers(0, 12_000), max_size=4))
def test_the_middle_of_a_run_looks_the_same_to_every_engine(
    kind: EngineKind, transfers: list[tuple[int, int, int]], stops: list[int]
) -> None:
    expected = statistics_at(EngineKind.REFERENCE, transfers, stops)
    assert statistics_at(kind, transfers, stops) == expected


def test_a_transfer_is_in_its_route_from_its_start_on() -> None:
    before, at, _ = statistics_at(EngineKind.REFERENCE, [(1, 64, 500)], [499, 500])
    assert (before.routes[1].packets_in, at.routes[1].packets_in) == (0, 1)


@given(TRANSFERS, st.lists(st.integers(0, 12_000), max_size=4))
def test_counting_often_changes_no_count(
    transfers: list[tuple[int, int, int]], stops: list[int]
) -> None:
    expected = statistics_at(EngineKind.REFERENCE, transfers, stops)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "MAX_UNCOUNTED", 3)
        patch.setattr(network, "MAX_NOTED", 2)
        assert statistics_at(EngineKind.REFERENCE, transfers, stops) == expected
