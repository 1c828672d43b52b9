"""Writes plans: steps of all ranks, side by side."""

from collections.abc import Sequence

from tilewright.collectives.plan import Move, Plan, Step

Blocks = Sequence[int]


class Script:
    """Messages by turn; within a turn, sends before receives."""

    def __init__(self, num_ranks: int, num_blocks: int) -> None:
        self._sends: list[list[Step]] = [[] for _ in range(num_ranks)]
        self._receives: list[list[Step]] = [[] for _ in range(num_ranks)]
        self._num_blocks = num_blocks

    def move(self, turn: int, source: int, target: int, blocks: Blocks, *, combines: bool) -> None:
        """Blocks go from one rank to another."""
        receive = Move.COMBINE if combines else Move.TAKE
        for block in blocks:
            self._sends[source].append(Step(Move.SEND, target, block, turn))
            self._receives[target].append(Step(receive, source, block, turn))

    def plan(self) -> Plan:
        ranks = zip(self._sends, self._receives, strict=True)
        steps = (
            sorted([*sends, *receives], key=lambda step: step.turn) for sends, receives in ranks
        )
        return Plan(self._num_blocks, tuple(map(tuple, steps)))


def ring_reduce(script: Script, turn: int, members: Sequence[int], parts: Sequence[Blocks]) -> int:
    """Reduce around a ring from a turn on: member i ends with part i. Returns the next turn."""
    size = len(members)
    for step in range(size - 1):
        for place, rank in enumerate(members):
            peer, part = members[(place + 1) % size], parts[(place - step - 1) % size]
            script.move(turn + step, rank, peer, part, combines=True)
    return turn + size - 1


def ring_gather(script: Script, turn: int, members: Sequence[int], parts: Sequence[Blocks]) -> int:
    """Gather around a ring: member i begins with part i, and all end with all."""
    size = len(members)
    for step in range(size - 1):
        for place, rank in enumerate(members):
            peer, part = members[(place + 1) % size], parts[(place - step) % size]
            script.move(turn + step, rank, peer, part, combines=False)
    return turn + size - 1
