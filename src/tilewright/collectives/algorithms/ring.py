"""Around one ring of ranks, or around it both ways with two halves of the buffer."""

from collections.abc import Sequence
from itertools import pairwise

from tilewright.collectives.algorithms.line import is_line, plan_line
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan
from tilewright.collectives.script import Script, ring_gather, ring_reduce


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
