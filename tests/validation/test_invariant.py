"""Failures that other simulators had in public (tt-npe), replayed: none of them may come back.

A cycle has 1000 ps and a flit 40 bytes, so a link of one flit per cycle moves 40 bytes per cycle.
"""

from fractions import Fraction

import pytest

from tests.kinds import ENGINES
from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)

CYCLE_PS = 1_000
FLIT = 40
PACKET_FLITS = 8
PACKET = PACKET_FLITS * FLIT


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    kind: EngineKind = request.param
    return build_engine(kind, EngineSpec(FLIT, PACKET_FLITS))


def add_link(
    engine: Engine,
    name: str,
    *,
    cycles_per_flit: int = 1,
    arbitration: Arbitration = Arbitration.FIFO,
    reassemble: bool = False,
) -> int:
    rate = FLIT * 10**6 // (cycles_per_flit * CYCLE_PS)
    spec = ServerSpec(name, rate, arbitration=arbitration, reassemble=reassemble)
    return engine.add_server(spec)


@pytest.mark.parametrize("arbitration", Arbitration)
def test_ports_into_one_controller_share_its_bandwidth(
    engine: Engine, arbitration: Arbitration
) -> None:
    """Three ports of 40 bytes per cycle once moved 119 through a controller of 40."""
    controller = add_link(engine, "controller", arbitration=arbitration)
    graph = TaskGraph()
    packets = 50
    for port in range(3):
        link = add_link(engine, f"port{port}")
        graph.transfer(engine.add_route([link, controller]), num_bytes=packets * PACKET)
    engine.submit(graph)
    engine.run()
    statistics = engine.statistics()
    # one cycle until the first flit is there, and from then on it never rests
    cycles = 3 * packets * PACKET_FLITS
    assert statistics.now_ps == (1 + cycles) * CYCLE_PS
    assert statistics.server("controller").num_bytes == 3 * packets * PACKET
    assert statistics.server("controller").busy_ps == cycles * CYCLE_PS
    assert statistics.utilisation("controller") == Fraction(cycles, cycles + 1) < 1
    assert all(statistics.utilisation(f"port{port}") <= 1 for port in range(3))


@pytest.mark.parametrize(
    ("arbitration", "end"), [(Arbitration.FIFO, 10 + 30), (Arbitration.ROUND_ROBIN, 10 + 40)]
)
def test_a_flow_throttled_elsewhere_takes_no_capacity_it_cannot_use(
    engine: Engine, arbitration: Arbitration, end: int
) -> None:
    """A staggered start was once off by half, since a slow flow kept its full demand."""
    slow = add_link(engine, "slow", cycles_per_flit=4)
    shared = add_link(engine, "shared", arbitration=arbitration, reassemble=True)
    graph = TaskGraph()
    packets = 30
    throttled, direct = engine.add_route([slow, shared]), engine.add_route([shared])
    graph.transfer(throttled, num_bytes=packets * PACKET, effect=0)
    late_ps = 10 * PACKET_FLITS * CYCLE_PS
    graph.transfer(direct, num_bytes=packets * PACKET, delay_ps=late_ps, effect=1)
    engine.submit(graph)
    engine.run()
    ends_ps = {effect: end_ps for end_ps, effect in engine.take_effects()}
    # In units of a packet on the shared link: the slow link hands one over at 4, 8, ..., 120. The
    # other 30 are there at 10: first come, they are served at once; in turn, the slow ones take
    # 12, 16, ..., 48 of the units between 10 and 50.
    unit_ps = PACKET_FLITS * CYCLE_PS
    assert ends_ps == {0: (4 * packets + 1) * unit_ps, 1: end * unit_ps}


@pytest.mark.parametrize("num_flits", [1, 2, PACKET_FLITS])
def test_a_lone_small_packet_gets_no_more_than_the_slowest_link(
    engine: Engine, num_flits: int
) -> None:
    """A lone small packet was once always given the peak bandwidth."""
    fast, slow = add_link(engine, "fast"), add_link(engine, "slow", cycles_per_flit=5)
    graph = TaskGraph()
    graph.transfer(engine.add_route([fast, slow, fast]), num_bytes=num_flits * FLIT)
    engine.submit(graph)
    engine.run()
    statistics = engine.statistics()
    cycles = 1 + 5 + 1 + (num_flits - 1) * 5
    assert statistics.now_ps == cycles * CYCLE_PS
    assert statistics.now_ps >= max(server.busy_ps for server in statistics.servers)
    assert statistics.server("slow").busy_ps == 5 * num_flits * CYCLE_PS
