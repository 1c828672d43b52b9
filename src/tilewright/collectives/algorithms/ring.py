"""Around one ring of ranks, around it both ways with two halves, or along a line that is open.

A ring would close over all links of a line. There its messages wait behind those of the ranks that
they pass, and keep others waiting; along the line nothing passes a rank. A link carries an
all-reduced buffer once each way, a ring's 2 (p - 1) / p times.
"""

from collections.abc import Sequence
from itertools import pairwise

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script, ring_gather, ring_reduce


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


def plan_ring(call: Call, lane: int) -> Plan:
    """Every second pair of lanes goes the other way round, so both directions of links are used.

    Not every second lane: parallel links are chosen by the parity of a PE. Where the ring cannot be
    closed but over all of its links, ranks send to their neighbours instead.
    """
    if is_line(call):
        return plan_line(call)
    script = Script(call.num_ranks, call.num_ranks)
    _write(script, call, _members(call, reverse=lane // 2 % 2 == 1), range(call.num_ranks))
    return script.plan()


def plan_bidirectional_ring(call: Call, lane: int) -> Plan:
    """Two halves of every part go opposite ways at the same time."""
    ranks = call.num_ranks
    script = Script(ranks, 2 * ranks)
    for half in range(2):
        members = _members(call, reverse=(half + lane) % 2 == 1)
        _write(script, call, members, range(half, 2 * ranks, 2))
    return script.plan()


def _members(call: Call, *, reverse: bool) -> list[int]:
    """From the root on."""
    members = [(call.root + place) % call.num_ranks for place in range(call.num_ranks)]
    return [members[0], *reversed(members[1:])] if reverse else members


def _write(script: Script, call: Call, members: Sequence[int], blocks: Sequence[int]) -> None:
    parts = [[blocks[rank]] for rank in members]
    match call.operation:
        case Operation.ALL_REDUCE:
            turn = ring_reduce(script, 0, members, parts)
            ring_gather(script, turn, members, parts)
        case Operation.REDUCE_SCATTER:
            ring_reduce(script, 0, members, parts)
        case Operation.ALL_GATHER:
            ring_gather(script, 0, members, parts)
        case Operation.BROADCAST:  # down the chain that begins at the root
            for turn, (source, target) in enumerate(pairwise(members)):
                script.move(turn, source, target, blocks, combines=False)
        case Operation.REDUCE:  # up the chain that ends there
            for turn, (source, target) in enumerate(pairwise([*members[:0:-1], members[0]])):
                script.move(turn, source, target, blocks, combines=True)


_OPERATIONS = frozenset(
    (
        Operation.ALL_REDUCE,
        Operation.REDUCE_SCATTER,
        Operation.ALL_GATHER,
        Operation.BROADCAST,
        Operation.REDUCE,
    )
)
ALGORITHMS = (
    Algorithm("ring", _OPERATIONS, plan_ring, preference=0),
    Algorithm("bidirectional_ring", _OPERATIONS, plan_bidirectional_ring, preference=1),
)
