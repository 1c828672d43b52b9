"""Along a line of ranks whose ends are apart: every message goes to a neighbour.

A ring would close over all links of the line. There its messages wait behind those of the ranks
that they pass, and keep others waiting; here nothing passes a rank. A link carries an all-reduced
buffer once each way, a ring's 2 (p - 1) / p times.
"""

from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan
from tilewright.collectives.script import Script


def is_line(call: Call) -> bool:
    """Whether ranks lie on a line that is not closed, and some are not next to each other."""
    return call.is_open and call.num_ranks > 2 and max(call.shape) == call.num_ranks


def plan_line(call: Call) -> Plan:
    """Sums go to the middle from both sides, and results back. Parts that ranks own go to them from
    both sides, or from them to both.
    """
    ranks = call.num_ranks
    script = Script(ranks, ranks)
    match call.operation:
        case Operation.ALL_REDUCE:
            middle = ranks // 2
            _outward(script, _inward(script, ranks, middle), ranks, middle)
        case Operation.REDUCE:
            _inward(script, ranks, call.root)
        case Operation.BROADCAST:
            _outward(script, 0, ranks, call.root)
        case Operation.REDUCE_SCATTER:
            _to_owners(script, ranks)
        case Operation.ALL_GATHER:
            _from_owners(script, ranks)
    return script.plan()


def _inward(script: Script, ranks: int, goal: int) -> int:
    """All blocks, the farthest ranks first; returns the next turn."""
    num_turns = max(goal, ranks - 1 - goal)
    for rank in range(ranks):
        if rank != goal:
            turn = num_turns - abs(rank - goal)
            script.move(turn, rank, _nearer(rank, goal), range(ranks), combines=True)
    return num_turns


def _outward(script: Script, turn: int, ranks: int, start: int) -> None:
    for rank in range(ranks):
        if rank != start:
            nearer = _nearer(rank, start)
            away = abs(nearer - start)
            script.move(turn + away, nearer, rank, range(ranks), combines=False)


def _to_owners(script: Script, ranks: int) -> None:
    """What has farthest to go is sent first, so all that comes to a rank ends at one time."""
    for owner in range(ranks):
        for rank in range(ranks):
            if rank != owner:
                start = 0 if rank < owner else ranks - 1
                turn = ranks - 1 - abs(owner - start) + abs(rank - start)
                script.move(turn, rank, _nearer(rank, owner), [owner], combines=True)


def _from_owners(script: Script, ranks: int) -> None:
    for owner in range(ranks):
        for rank in range(ranks):
            if rank != owner:
                nearer = _nearer(rank, owner)
                script.move(abs(nearer - owner), nearer, rank, [owner], combines=False)


def _nearer(rank: int, goal: int) -> int:
    return rank + 1 if rank < goal else rank - 1
