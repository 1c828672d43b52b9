"""Failures that another simulator, tt-npe, had in public, replayed: none of them may come back.

A cycle has 1000 ps and a flit 40 bytes, so a link of one flit a cycle moves 40 bytes a cycle.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from tilewright.engine import (
    Arbitration,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)
from tilewright.validation.conservation.run import ports_ps
from tilewright.validation.engine_run import finish, transfer_ps
from tilewright.validation.finding import Finding, Row, at_most, exact

CYCLE_PS = 1_000
FLIT_BYTES = 40
PACKET_FLITS = 8
PACKET_BYTES = PACKET_FLITS * FLIT_BYTES
FULL_RATE = 40_000  # bytes per microsecond: one flit a cycle
SPEC = EngineSpec(FLIT_BYTES, PACKET_FLITS)


def check_controller(kind: EngineKind) -> Finding:
    """PR 125: three ports got 119 bytes a cycle through a controller of 40."""
    packets = 50
    num_bytes = packets * PACKET_BYTES
    end_ps = ports_ps(kind, SPEC, FULL_RATE, ports=3, num_bytes=num_bytes, controllers=1)
    # one cycle until the first flit is there; from then on the controller never rests
    cycles = 1 + 3 * packets * PACKET_FLITS
    return exact(cycles, Fraction(end_ps, CYCLE_PS), "cycles")


def check_use(kind: EngineKind) -> Finding:
    """PR 125: a memory was more than twice as busy as it can be."""
    engine = build_engine(kind, SPEC)
    memory = engine.add_server(ServerSpec("memory", FULL_RATE))
    route = engine.add_route([memory])
    graph = TaskGraph()
    for _ in range(8):
        graph.transfer(route, 20 * PACKET_BYTES)
    finish(engine, graph)
    return at_most(1, engine.statistics().utilisation("memory"), "busy")


def check_staggered(kind: EngineKind, *, arbitration: Arbitration, end: int) -> Finding:
    """#127: a flow that a slow link throttles kept its full demand on a shared one.

    In units of a packet on the shared link, the slow link hands one over at 4, 8, ... The direct
    flow has 30 there at 10. First come, first served, it is done at 40; in turn, the slow flow
    takes 12, 16, ..., 48 of the units until 50.
    """
    engine, packets = build_engine(kind, SPEC), 30
    slow = engine.add_server(ServerSpec("slow", FULL_RATE // 4))
    shared = engine.add_server(
        ServerSpec("shared", FULL_RATE, arbitration=arbitration, reassemble=True)
    )
    unit_ps = PACKET_FLITS * CYCLE_PS
    graph = TaskGraph()
    graph.transfer(engine.add_route([slow, shared]), packets * PACKET_BYTES)
    direct = engine.add_route([shared])
    graph.transfer(direct, packets * PACKET_BYTES, delay_ps=10 * unit_ps, effect=1)
    finish(engine, graph)
    ((end_ps, _),) = engine.take_effects()
    return exact(end, Fraction(end_ps, unit_ps), "packets")


def check_lone_packet(kind: EngineKind, *, flits: int) -> Finding:
    """PR 130: a lone small packet was always given the peak bandwidth."""
    rates = {"fast": FULL_RATE, "slow": FULL_RATE // 5, "last": FULL_RATE}
    links = [ServerSpec(name, rate) for name, rate in rates.items()]
    found_ps = transfer_ps(kind, links, flits * FLIT_BYTES, SPEC)
    return exact(1 + 5 * flits + 1, Fraction(found_ps, CYCLE_PS), "cycles")


def oracles() -> Iterator[Row]:
    yield "IN7 tt-npe PR 125, three ports into one controller", check_controller
    yield "IN2 tt-npe PR 125, use of a memory", check_use
    for arbitration, end in ((Arbitration.FIFO, 40), (Arbitration.ROUND_ROBIN, 50)):
        name = f"IN4 tt-npe #127, staggered start, {arbitration.value.replace('_', ' ')}"
        yield name, partial(check_staggered, arbitration=arbitration, end=end)
    for flits in (1, PACKET_FLITS):
        name = f"IN3 tt-npe PR 130, a lone packet of {flits} flits"
        yield name, partial(check_lone_packet, flits=flits)
