"""Plans of textbooks that the table of collectives has no use for, proved like all others."""

from collections.abc import Callable

from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation, goal_of, start_of
from tilewright.collectives.plan import Plan, Script, check_plan, ring_gather


def table_plan(algorithm: str, operation: Operation, num_ranks: int, lane: int = 0) -> Plan:
    """Of our own table, as users run it."""
    call = Call(operation, num_ranks, shape=())
    return checked_plan(ALGORITHMS[algorithm], call, lane).plan


def doubling_all_reduce(num_ranks: int) -> Plan:
    """Recursive doubling: all of the buffer, to the rank that differs in one bit."""
    return _proved(Operation.ALL_REDUCE, num_ranks, _double)


def binomial_broadcast(num_ranks: int) -> Plan:
    """Everybody who has the buffer hands all of it on, half as far each time."""
    return _proved(Operation.BROADCAST, num_ranks, _broadcast)


def scattered_broadcast(num_ranks: int) -> Plan:
    """Halves of what is left go down a binomial tree; a ring gathers them."""
    return _proved(Operation.BROADCAST, num_ranks, _scatter_and_gather)


def _proved(operation: Operation, num_ranks: int, write: Callable[[Script, int], None]) -> Plan:
    """Of a power of two of ranks."""
    script = Script(num_ranks, num_ranks)
    write(script, num_ranks)
    plan, call = script.plan(), Call(operation, num_ranks)
    check_plan(plan, start_of(call, num_ranks), goal_of(call, num_ranks), write.__name__)
    return plan


def _double(script: Script, num_ranks: int) -> None:
    for turn in range(num_ranks.bit_length() - 1):
        for rank in range(num_ranks):
            script.move(turn, rank, rank ^ (1 << turn), range(num_ranks), combines=True)


def _broadcast(script: Script, num_ranks: int) -> None:
    for turn, distance in enumerate(_distances(num_ranks)):
        for rank in range(0, num_ranks, 2 * distance):
            script.move(turn, rank, rank + distance, range(num_ranks), combines=False)


def _scatter_and_gather(script: Script, num_ranks: int) -> None:
    distances = _distances(num_ranks)
    for turn, distance in enumerate(distances):
        for rank in range(0, num_ranks, 2 * distance):
            far = rank + distance
            script.move(turn, rank, far, range(far, far + distance), combines=False)
    parts = [[rank] for rank in range(num_ranks)]
    ring_gather(script, len(distances), range(num_ranks), parts)


def _distances(num_ranks: int) -> list[int]:
    """Half of the ranks, a quarter of them, ... 1."""
    return [num_ranks >> bit for bit in range(1, num_ranks.bit_length())]
