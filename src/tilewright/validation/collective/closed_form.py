"""Collectives on paper: plans on idle networks beside alpha, beta and gamma. CO1 to CO9.

A message of n bytes takes alpha + n beta, and its sum n gamma more. On an idle wire that is exact:
alpha is the wire's latency, beta what a flit takes for each of its bytes. Plans are those of our
table, and some of textbooks that it has no use for, proved like all others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation, goal_of, start_of
from tilewright.collectives.plan import Plan, Script, check_plan, ring_pass
from tilewright.engine import EngineKind
from tilewright.units import PS_PER_NS, PS_PER_US
from tilewright.validation.collective.run import Wiring, run_plans
from tilewright.validation.finding import Finding, Row, exact, printed, ramp
from tilewright.validation.network import Network, full, neighbour_cycle


def table_plan(algorithm: str, operation: Operation, num_ranks: int, lane: int = 0) -> Plan:
    """Of our own table, as users run it."""
    call = Call(operation, num_ranks, shape=())
    return checked_plan(ALGORITHMS[algorithm], call, lane).plan


def _proved(operation: Operation, write: Callable[[Script, int], None], num_ranks: int) -> Plan:
    """Of a power of two of ranks."""
    script = Script(num_ranks, num_ranks)
    write(script, num_ranks)
    plan, call = script.plan(), Call(operation, num_ranks)
    check_plan(plan, start_of(call, num_ranks), goal_of(call, num_ranks), write.__name__)
    return plan


def _double(script: Script, num_ranks: int) -> None:
    """All of the buffer, to the rank that differs in one bit."""
    for turn in range(num_ranks.bit_length() - 1):
        for rank in range(num_ranks):
            script.move(turn, rank, rank ^ (1 << turn), range(num_ranks), combines=True)


def _broadcast(script: Script, num_ranks: int) -> None:
    """Everybody who has the buffer hands all of it on, half as far each time."""
    for turn, distance in enumerate(_distances(num_ranks)):
        for rank in range(0, num_ranks, 2 * distance):
            script.move(turn, rank, rank + distance, range(num_ranks), combines=False)


def _scatter_and_gather(script: Script, num_ranks: int) -> None:
    """Halves of what is left go down a binomial tree; a ring gathers them."""
    distances = _distances(num_ranks)
    for turn, distance in enumerate(distances):
        for rank in range(0, num_ranks, 2 * distance):
            far = rank + distance
            script.move(turn, rank, far, range(far, far + distance), combines=False)
    parts = [[rank] for rank in range(num_ranks)]
    ring_pass(script, len(distances), range(num_ranks), parts, combines=False)


def _distances(num_ranks: int) -> list[int]:
    """Half of the ranks, a quarter of them, ... 1."""
    return [num_ranks >> bit for bit in range(1, num_ranks.bit_length())]


doubling_all_reduce = partial(_proved, Operation.ALL_REDUCE, _double)
binomial_broadcast = partial(_proved, Operation.BROADCAST, _broadcast)
scattered_broadcast = partial(_proved, Operation.BROADCAST, _scatter_and_gather)


MIB = 2**20
EXAMPLE = Wiring(latency_ps=PS_PER_US, bytes_per_us=50_000)
EXAMPLE_RANKS = 8
BUSY = Wiring(latency_ps=700_000, bytes_per_us=32_000, sum_ps_per_kib=4_000)
BUSY_RANKS = 16
BOTH_WAYS_BYTES = 33_554_432
BOTH_WAYS = Wiring(1, bytes_per_us=45_000, flit_bytes=9, packet_flits=4096)  # 200 ps a flit
LARGE_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class Law:
    """An algorithm and what it takes: so many alphas, and of the whole buffer so many betas and
    gammas.
    """

    name: str
    plan: Callable[[int], Plan]
    network: Callable[[int], Network]
    alphas: Callable[[int], int]
    betas: Callable[[int], Fraction]
    gammas: Callable[[int], Fraction]
    example_us: str  # of 8 ranks, 1 MiB, alpha 1 us and 50 GB/s
    nodes: Callable[[int], tuple[int, ...]] = field(default=lambda ranks: tuple(range(ranks)))

    def run_ps(self, kind: EngineKind, wiring: Wiring, ranks: int, num_bytes: int) -> int:
        plan, network = self.plan(ranks), self.network(ranks)
        return run_plans(kind, network, wiring, [plan], num_bytes, nodes=self.nodes(ranks))

    def paper_ps(self, wiring: Wiring, ranks: int, num_bytes: int) -> Fraction:
        beta = num_bytes * Fraction(PS_PER_US, wiring.bytes_per_us)
        gamma = num_bytes * Fraction(wiring.sum_ps_per_kib, 1024)
        return (
            self.alphas(ranks) * wiring.latency_ps
            + self.betas(ranks) * beta
            + self.gammas(ranks) * gamma
        )


def _log(ranks: int) -> int:
    return ranks.bit_length() - 1


def _rest(ranks: int) -> Fraction:
    """All parts of a buffer but one's own."""
    return Fraction(ranks - 1, ranks)


def _none(_ranks: int) -> Fraction:
    return Fraction(0)


def _twice(ranks: int) -> Fraction:
    return 2 * _rest(ranks)


def _rows(ranks: int) -> int:
    return 4 if ranks == BUSY_RANKS else 2


def _torus(ranks: int) -> Network:
    return Network(_rows(ranks), ranks // _rows(ranks), wraps=True)


def _torus_plan(ranks: int) -> Plan:
    shape = (_rows(ranks), ranks // _rows(ranks))
    call = Call(Operation.ALL_REDUCE, ranks, shape=shape)
    return checked_plan(ALGORITHMS["torus_2d"], call, 0).plan


def _ring(operation: Operation) -> Callable[[int], Plan]:
    return partial(table_plan, "ring", operation)


def _closed_line(ranks: int) -> Network:
    return Network(1, ranks, wraps=True)


LAWS = (
    Law("CO1 ring reduce-scatter", _ring(Operation.REDUCE_SCATTER), _closed_line,
        lambda p: p - 1, _rest, _rest, "25.350"),
    Law("CO1 ring all-gather", _ring(Operation.ALL_GATHER), _closed_line,
        lambda p: p - 1, _rest, _none, "25.350"),
    Law("CO2 ring all-reduce", _ring(Operation.ALL_REDUCE), _closed_line,
        lambda p: 2 * (p - 1), _twice, _rest, "50.700"),
    Law("CO3 recursive doubling all-reduce", doubling_all_reduce, full,
        _log, lambda p: Fraction(_log(p)), lambda p: Fraction(_log(p)), "65.915"),
    Law("CO4 halving and doubling all-reduce",
        partial(table_plan, "halving_doubling", Operation.ALL_REDUCE), full,
        lambda p: 2 * _log(p), _twice, _rest, "42.700"),
    Law("CO5 binomial broadcast", binomial_broadcast, full,
        _log, lambda p: Fraction(_log(p)), _none, "65.915"),
    Law("CO6 broadcast by scatter and ring", scattered_broadcast, full,
        lambda p: _log(p) + p - 1, _twice, _none, "46.700"),
    Law("CO7 torus all-reduce", _torus_plan, _torus,
        lambda p: 2 * (_rows(p) + p // _rows(p) - 2), _twice, _rest, "44.700"),
    Law("CO8 ring of neighbours on a mesh", _ring(Operation.ALL_REDUCE),
        lambda p: Network(_rows(p), p // _rows(p)), lambda p: 2 * (p - 1), _twice, _rest, "50.700",
        lambda p: neighbour_cycle(_rows(p), p // _rows(p))),
)  # fmt: skip


def check_example(kind: EngineKind, *, law: Law) -> Finding:
    """The published figure."""
    found_ps = law.run_ps(kind, EXAMPLE, EXAMPLE_RANKS, MIB)
    return printed(law.example_us, Fraction(found_ps, PS_PER_US), "us")


def check_exact(kind: EngineKind, *, law: Law) -> Finding:
    """Other ranks, sizes and rates, and sums that take time."""
    expected_ps = law.paper_ps(BUSY, BUSY_RANKS, MIB)
    return exact(expected_ps, law.run_ps(kind, BUSY, BUSY_RANKS, MIB), "ps")


def check_crossover(kind: EngineKind) -> Finding:
    """The least buffer for which a ring takes no longer than recursive doubling."""
    ring = next(law for law in LAWS if law.name.startswith("CO2"))
    doubling = next(law for law in LAWS if law.name.startswith("CO3"))
    step = EXAMPLE.flit_bytes * EXAMPLE_RANKS

    def is_ring_faster(steps: int) -> bool:
        times = [law.run_ps(kind, EXAMPLE, EXAMPLE_RANKS, steps * step) for law in (ring, doubling)]
        return times[0] <= times[1]

    low, high = 1, 2 * MIB // step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_ring_faster(middle) else (middle + 1, high)
    return printed("440", Fraction(low * step, 1000), "KB")


def check_both_ways(kind: EngineKind, *, operation: Operation, figure: str) -> Finding:
    """Two halves of the buffer go round a ring in both directions at once."""
    plan = table_plan("bidirectional_ring", operation, EXAMPLE_RANKS)
    network = _closed_line(EXAMPLE_RANKS)
    found_ps = run_plans(kind, network, BOTH_WAYS, [plan], BOTH_WAYS_BYTES)
    return printed(figure, Fraction(found_ps, PS_PER_US), "us")


def check_bus(kind: EngineKind, *, ranks: int, operation: Operation, factor: Fraction) -> Finding:
    """Bus bandwidth of a ring: the link's, whatever the number of ranks."""
    plan, network = table_plan("ring", operation, ranks), _closed_line(ranks)
    wide = Wiring(EXAMPLE.latency_ps, EXAMPLE.bytes_per_us, packet_flits=4096)
    found_ps = run_plans(kind, network, wide, [plan], LARGE_BYTES)
    expected = Fraction(EXAMPLE.bytes_per_us, PS_PER_NS)
    return ramp(expected, factor * LARGE_BYTES * PS_PER_NS / found_ps, "GB/s")


def oracles() -> Iterator[Row]:
    for law in LAWS:
        yield f"{law.name}, 8 ranks, 1 MiB", partial(check_example, law=law)
        yield f"{law.name}, 16 ranks, with sums", partial(check_exact, law=law)
    yield "CO9 ring and recursive doubling meet", check_crossover
    for operation, figure in (
        (Operation.ALL_GATHER, "326.2"),
        (Operation.REDUCE_SCATTER, "326.2"),
        (Operation.ALL_REDUCE, "652.4"),
    ):
        check = partial(check_both_ways, operation=operation, figure=figure)
        yield f"CO1 {operation.value} both ways round a ring of 8", check
    for ranks in (2, 4, 8, 16):
        for operation, factor in (
            (Operation.ALL_REDUCE, _twice(ranks)),
            (Operation.ALL_GATHER, _rest(ranks)),
        ):
            check = partial(check_bus, ranks=ranks, operation=operation, factor=factor)
            yield f"CO2 bus bandwidth of a ring {operation.value}, {ranks} ranks", check
