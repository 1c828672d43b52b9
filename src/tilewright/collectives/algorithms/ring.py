"""Around one ring of ranks, around it both ways with two halves, or along a line that is open.

A ring would close over all links of a line. There its messages wait behind those of the ranks that
they pass, and keep others waiting; along the line nothing passes a rank. A link carries an
all-reduced buffer once each way, a ring's 2 (p - 1) / p times.
"""

from collections.abc import Sequence
from itertools import pairwise

from tilewright.collectives.algorithm import SCATTERING, Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script, ring_pass


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
            middle = ranks // 2  # from which neither end is farther than this
            _inward(script, middle, middle, range(ranks), ranks)
            _outward(script, middle, middle, range(ranks), ranks)
        case Operation.REDUCE:
            _inward(script, max(call.root, ranks - 1 - call.root), call.root, range(ranks), ranks)
        case Operation.BROADCAST:
            _outward(script, 0, call.root, range(ranks), ranks)
        case Operation.REDUCE_SCATTER:
            for owner in range(ranks):
                _inward(script, ranks - 1, owner, [owner], ranks)
        case Operation.ALL_GATHER:
            for owner in range(ranks):
                _outward(script, 0, owner, [owner], ranks)
    return script.plan()


def _inward(script: Script, turn: int, goal: int, blocks: Sequence[int], ranks: int) -> None:
    """Sum blocks at a rank by a turn: what has farthest to go is sent first."""
    for rank in range(ranks):
        if rank != goal:
            nearer = _nearer(rank, goal)
            script.move(turn - abs(rank - goal), rank, nearer, blocks, combines=True)


def _outward(script: Script, turn: int, start: int, blocks: Sequence[int], ranks: int) -> None:
    """Take blocks from a rank to all others, from a turn on."""
    for rank in range(ranks):
        if rank != start:
            nearer = _nearer(rank, start)
            script.move(turn + abs(nearer - start), nearer, rank, blocks, combines=False)


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
            turn = ring_pass(script, 0, members, parts, combines=True)
            ring_pass(script, turn, members, parts, combines=False)
        case Operation.REDUCE_SCATTER:
            ring_pass(script, 0, members, parts, combines=True)
        case Operation.ALL_GATHER:
            ring_pass(script, 0, members, parts, combines=False)
        case Operation.BROADCAST:  # down the chain that begins at the root
            for turn, (source, target) in enumerate(pairwise(members)):
                script.move(turn, source, target, blocks, combines=False)
        case Operation.REDUCE:  # up the chain that ends there
            for turn, (source, target) in enumerate(pairwise([*members[:0:-1], members[0]])):
                script.move(turn, source, target, blocks, combines=True)


_OPERATIONS = SCATTERING | {Operation.BROADCAST, Operation.REDUCE}
ALGORITHMS = (
    Algorithm("ring", _OPERATIONS, plan_ring, preference=0),
    Algorithm("bidirectional_ring", _OPERATIONS, plan_bidirectional_ring, preference=1),
)
