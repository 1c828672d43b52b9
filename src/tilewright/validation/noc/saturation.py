"""Where a mesh saturates: by counting routes, at random, and with finite buffers. NO5 to NO9."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from tilewright.engine import EngineKind
from tilewright.validation.finding import Finding, Row, at_most, exact, in_band, near_model, ramp
from tilewright.validation.noc.flit import run_flits
from tilewright.validation.noc.mesh import (
    CYCLE_PS,
    PACKET_FLITS,
    MeshRun,
    Pattern,
    all_pairs,
    balanced_traffic,
    link_load,
    network_load,
    random_traffic,
    run_traffic,
)

RATE = "flits/cycle"
CYCLES = 40_000  # of random injection
DRAIN_CYCLES = 200  # in which all is delivered that was injected at 0.9 of the limit
BUFFER_FLITS = 16  # four packets
OVERLOAD = 1.1
SEED = 1


@dataclass(frozen=True, slots=True)
class Limit:
    """What a sender can inject at most, if every link takes a flit a cycle."""

    law: str
    side: int
    pattern: Pattern
    flits_per_cycle: Fraction
    pairs_per_sender: int  # that count as injected


def check_counted(_kind: EngineKind, *, limit: Limit) -> Finding:
    """The busiest link of the pattern, counted, allows exactly the closed form."""
    busiest = link_load(limit.side, limit.pattern)
    return exact(limit.flits_per_cycle, Fraction(limit.pairs_per_sender, busiest), RATE)


# -- saturation with unbounded queues ------------------------------------------------------------


@lru_cache(maxsize=8)
def _random_run(limit: Limit, share: float, kind: EngineKind) -> MeshRun:
    rate = share * float(limit.flits_per_cycle)
    traffic = random_traffic(limit.pattern, rate, CYCLES, SEED)
    return run_traffic(limit.side, limit.pattern, traffic, None, kind)


def check_drain(kind: EngineKind, *, limit: Limit) -> Finding:
    """At 0.9 of the limit, the last delivery after the end of injection."""
    last = _random_run(limit, 0.9, kind).last_cycle
    return at_most(DRAIN_CYCLES, max(Fraction(0), last - CYCLES), "cycles")


def check_busy_below(kind: EngineKind, *, limit: Limit) -> Finding:
    servers = _random_run(limit, 0.9, kind).statistics.servers
    busiest = max(Fraction(server.busy_ps, CYCLES * CYCLE_PS) for server in servers)
    return in_band("0.88", "0.94", busiest, "busy")


def check_busy_above(kind: EngineKind, *, limit: Limit) -> Finding:
    servers = _random_run(limit, OVERLOAD, kind).statistics.servers
    busiest = max(servers, key=lambda server: server.busy_ps)
    return ramp(1, Fraction(busiest.busy_ps, busiest.free_ps), "busy")


def check_late(kind: EngineKind, *, limit: Limit) -> Finding:
    last = _random_run(limit, OVERLOAD, kind).last_cycle
    return in_band("1.08", "1.14", last / CYCLES, "of injection")


# -- saturation with credits ---------------------------------------------------------------------


def _throughput(limit: Limit, rounds: int, last_cycle: Fraction) -> Fraction:
    """Flits of a sender per cycle until the last delivery."""
    return limit.pairs_per_sender * rounds * PACKET_FLITS / last_cycle


def check_credits(kind: EngineKind, *, limit: Limit, rounds: int) -> Finding:
    """Finite buffers saturate earlier, never later."""
    rate = OVERLOAD * float(limit.flits_per_cycle)
    traffic = balanced_traffic(limit.pattern, rate, rounds, SEED)
    run = run_traffic(limit.side, limit.pattern, traffic, BUFFER_FLITS, kind)
    return at_most(limit.flits_per_cycle, _throughput(limit, rounds, run.last_cycle), RATE)


@dataclass(frozen=True, slots=True)
class _Beside:
    """The throughput of both, and the packets that they deliver at different times."""

    flits: Fraction
    engine: Fraction
    differing: int


@lru_cache(maxsize=16)
def _beside(limit: Limit, rounds: int, kind: EngineKind) -> _Beside:
    rate = OVERLOAD * float(limit.flits_per_cycle)
    traffic = balanced_traffic(limit.pattern, rate, rounds, SEED)
    load = network_load(limit.side, limit.pattern, traffic, BUFFER_FLITS)
    found = run_traffic(limit.side, limit.pattern, traffic, BUFFER_FLITS, kind)
    model = run_flits(load).delivered_ps
    model_ps = np.array([model[number] for number in range(len(model))])
    return _Beside(
        _throughput(limit, rounds, Fraction(int(model_ps.max()), CYCLE_PS)),
        _throughput(limit, rounds, found.last_cycle),
        int((model_ps != found.ends_ps).sum()),
    )


def check_flit_model(kind: EngineKind, *, limit: Limit, rounds: int) -> Finding:
    beside = _beside(limit, rounds, kind)
    return near_model(beside.flits, beside.engine, RATE)


def check_deliveries(kind: EngineKind, *, limits: tuple[tuple[Limit, int], ...]) -> Finding:
    """Packets of all those loads that the flit model delivers at another picosecond."""
    differing = [_beside(limit, rounds, kind).differing for limit, rounds in limits]
    return exact(0, sum(differing), "packets")


def _limits(side: int) -> tuple[Limit, ...]:
    nodes, last = side**2, side**2 - 1
    swapped = [(y * side + x, x * side + y) for x in range(side) for y in range(side) if x != y]
    to_corner = tuple((node, 0) for node in range(1, nodes))
    everyone = tuple(all_pairs(nodes, with_self=True))
    others = tuple(all_pairs(nodes, with_self=False))
    corner = Fraction(1, side * (side - 1))
    return (
        Limit("NO5", side, Pattern("uniform", everyone), Fraction(4, side), nodes),
        Limit("NO6", side, Pattern("uniform, not to itself", others),
              Fraction(4 * last, side**3), last),
        Limit("NO7", side, Pattern("transpose", tuple(swapped)), Fraction(1, side - 1), 1),
        Limit("NO8", side, Pattern("hot spot", to_corner, ejects=True), Fraction(1, last), 1),
        Limit("NO9", side, Pattern("hot spot, fast exit", to_corner), corner, 1),
    )  # fmt: skip


# Packets of each pair: for the engine alone, and for the flit model, which is slow.
ROUNDS = {
    4: {"NO5": (32, 4), "NO6": (32, 4), "NO7": (400, 30), "NO8": (400, 20), "NO9": (400, 20)},
    8: {"NO5": (4, 1), "NO6": (4, 1), "NO7": (200, 10), "NO8": (100, 5), "NO9": (100, 5)},
}


def _saturated(limit: Limit) -> Iterator[Row]:
    title = f"{limit.law} {limit.pattern.name}, {limit.side} x {limit.side}"
    rounds, flit_rounds = ROUNDS[limit.side][limit.law]
    for what, check in (
        ("limit by counting", partial(check_counted, limit=limit)),
        ("drained at 0.9", partial(check_drain, limit=limit)),
        ("busiest link at 0.9", partial(check_busy_below, limit=limit)),
        ("busiest link at 1.1", partial(check_busy_above, limit=limit)),
        ("last delivery at 1.1", partial(check_late, limit=limit)),
        ("with credits", partial(check_credits, limit=limit, rounds=rounds)),
        ("beside flits", partial(check_flit_model, limit=limit, rounds=flit_rounds)),
    ):
        yield f"{title}: {what}", check


def oracles() -> Iterator[Row]:
    for side in (4, 8):
        limits = _limits(side)
        for limit in limits:
            yield from _saturated(limit)
        pairs = tuple((limit, ROUNDS[side][limit.law][1]) for limit in limits)
        check = partial(check_deliveries, limits=pairs)
        yield f"NO5-NO9 deliveries unlike flits, {side} x {side}", check
