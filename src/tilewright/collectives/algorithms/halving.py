"""Recursive halving and doubling: log2(p) exchanges, each with half of what is left."""

from collections.abc import Sequence

from tilewright.collectives.algorithm import SCATTERING, Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script


def plan_halving_doubling(call: Call, lane: int) -> Plan:
    """Ranks beyond a power of two hand their values to a partner first, and get results last.

    Pairs of lanes begin with different distances.
    """
    ranks = call.num_ranks
    script = Script(ranks, ranks)
    core = 1 << (ranks.bit_length() - 1)
    parts = [list(range(rank, ranks, core)) for rank in range(core)]
    distances = [1 << bit for bit in range(core.bit_length() - 1)]
    start = lane // 2 % max(1, len(distances))
    distances = distances[start:] + distances[:start]
    gathers = call.operation is Operation.ALL_GATHER
    for rank in range(core, ranks):
        blocks = [rank] if gathers else range(ranks)
        script.move(0, rank, rank - core, blocks, combines=not gathers)
    turn = 1 if gathers else _halve(script, 1, parts, distances)
    scatters = call.operation is Operation.REDUCE_SCATTER
    if not scatters:
        turn = _double(script, turn, parts, distances)
    for rank in range(core, ranks):
        blocks = [rank] if scatters else range(ranks)
        script.move(turn, rank - core, rank, blocks, combines=False)
    return script.plan()


def _halve(script: Script, turn: int, parts: Sequence[list[int]], distances: Sequence[int]) -> int:
    """Each exchange fixes one bit of the numbers of the parts that a rank still sums.

    What the peer will hand on goes first: it does so while the others travel.
    """
    fixed = 0
    for place, distance in enumerate(distances):
        fixed |= distance
        for rank in range(len(parts)):
            peer = rank ^ distance
            blocks = _blocks(parts, peer, fixed, distances[place + 1 :], reverse=True)
            script.move(turn, rank, peer, blocks, combines=True)
        turn += 1
    return turn


def _double(script: Script, turn: int, parts: Sequence[list[int]], distances: Sequence[int]) -> int:
    """What a rank has had for longest goes first."""
    fixed = sum(distances)
    for place in range(len(distances) - 1, -1, -1):
        for rank in range(len(parts)):
            blocks = _blocks(parts, rank, fixed, distances[place + 1 :])
            script.move(turn, rank, rank ^ distances[place], blocks, combines=False)
        fixed ^= distances[place]
        turn += 1
    return turn


def _blocks(
    parts: Sequence[list[int]],
    rank: int,
    mask: int,
    distances: Sequence[int],
    *,
    reverse: bool = False,
) -> list[int]:
    """The blocks of the parts whose numbers agree with a rank's in the bits of ``mask``.

    First those that agree at the first of the distances, too; in ``reverse`` they are last.
    """
    numbers = [number for number in range(len(parts)) if number & mask == rank & mask]
    numbers.sort(key=lambda number: [(number ^ rank) & distance != 0 for distance in distances])
    return [block for number in numbers[:: -1 if reverse else 1] for block in parts[number]]


ALGORITHMS = (Algorithm("halving_doubling", SCATTERING, plan_halving_doubling, preference=3),)
