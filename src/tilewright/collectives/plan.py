"""What each rank does in a collective: steps over blocks, and the proof that they are right.

A rank's buffer is cut into equal *blocks*. A step of a rank sends a block to a peer, or receives
one from a peer and combines it with its own or takes it in the place of its own. Both sides of a
message have the same *turn*; ranks run their steps in the order of turns. Turns are common to all,
so whatever is run turn after turn cannot come to a stop; a block may also be cut into chunks, and
chunk c of turn t run at t + c.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from tilewright.errors import CollectiveError


class Move(Enum):
    """What a step does with its block."""

    SEND = "send"
    TAKE = "take"  # receive, in the place of what is there
    COMBINE = "combine"  # receive, and reduce with what is there


@dataclass(frozen=True, slots=True)
class Step:
    """One message, from the side of a rank."""

    move: Move
    peer: int
    block: int
    turn: int


@dataclass(frozen=True)
class Plan:
    """The steps of every rank on a buffer of ``num_blocks`` blocks."""

    num_blocks: int
    steps: tuple[tuple[Step, ...], ...]  # by rank

    @property
    def num_ranks(self) -> int:
        return len(self.steps)

    @cached_property
    def num_turns(self) -> int:
        return max((step.turn + 1 for steps in self.steps for step in steps), default=0)

    @cached_property
    def blocks_per_turn(self) -> int:
        """The most that a rank sends to another in one turn."""
        sent = Counter((rank, step.peer, step.turn) for rank, step in self.sends())
        return max(sent.values(), default=0)

    @cached_property
    def is_staggered(self) -> bool:
        """Whether some rank waits while others send, as in trees and chains."""
        sent = Counter((rank, step.turn) for rank, step in self.sends())
        most: dict[int, int] = {}  # by turn
        for (_, turn), count in sent.items():
            most[turn] = max(count, most.get(turn, 0))
        by_rank = Counter(rank for rank, _ in self.sends())
        return any(by_rank[rank] < sum(most.values()) for rank in range(self.num_ranks))

    @cached_property
    def edges(self) -> frozenset[tuple[int, int]]:
        """Ranks, and whom they send to."""
        return frozenset((rank, step.peer) for rank, step in self.sends())

    @cached_property
    def most_receivers(self) -> int:
        """Of what any rank sends."""
        return max(Counter(rank for rank, _ in self.edges).values(), default=0)

    @cached_property
    def most_sends(self) -> int:
        """The most blocks that any rank sends to one other."""
        pairs = Counter((rank, step.peer) for rank, step in self.sends())
        return max(pairs.values(), default=0)

    def sends(self) -> Iterator[tuple[int, Step]]:
        """Yield ranks and their steps that send."""
        for rank, steps in enumerate(self.steps):
            for step in steps:
                if step.move is Move.SEND:
                    yield rank, step

    def peers(self, rank: int) -> tuple[int, ...]:
        """Whom a rank sends to or receives from, in the order of first use."""
        return tuple(dict.fromkeys(step.peer for step in self.steps[rank]))

    @cached_property
    def most_peers(self) -> int:
        """Of any rank."""
        return max((len(self.peers(rank)) for rank in range(self.num_ranks)), default=0)


Contribution = frozenset[int]
"""The ranks whose values are in a block, each once."""

Goal = Mapping[tuple[int, int], Contribution]
"""By rank and block: what it has to hold at the end. What is not named may be anything."""

Places = frozenset[tuple[int, int]]
"""Ranks, and places among their steps."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of the steps of a plan that is right."""

    completing: Places = frozenset()  # a block gets the last of all ranks' values
    partial: Places = frozenset()  # the message, sent or received, has some ranks' values summed


def check_plan(
    plan: Plan, start: Mapping[tuple[int, int], Contribution], goal: Goal, where: str
) -> Proof:
    """Run the plan on sets of contributions; refuse one that is stuck, or ends with other sums.

    ``start`` says what ranks hold; a block that is not named there is empty space.
    """
    everybody = frozenset(range(plan.num_ranks))
    completing, partial = set(), set()
    held = dict(start)
    queues: dict[tuple[int, int], deque[tuple[int, Contribution]]] = {}
    places = [0] * plan.num_ranks
    is_moving = True
    while is_moving:
        is_moving = False
        for rank, steps in enumerate(plan.steps):
            while places[rank] < len(steps):
                step = steps[places[rank]]
                moved = _do(rank, step, held, queues, where)
                if moved is None:
                    break
                if 1 < len(moved) < plan.num_ranks:
                    partial.add((rank, places[rank]))
                if step.move is Move.COMBINE and held[rank, step.block] == everybody:
                    completing.add((rank, places[rank]))
                places[rank] += 1
                is_moving = True
    for rank, place in enumerate(places):
        if place < len(plan.steps[rank]):
            step = plan.steps[rank][place]
            text = f"rank {rank} waits for block {step.block} from rank {step.peer} for ever"
            raise CollectiveError(where, text, "a send for each receive", "correct the plan")
    for (sender, receiver), queue in queues.items():
        if queue:
            text = f"{len(queue)} blocks from rank {sender} that rank {receiver} never receives"
            raise CollectiveError(where, text, "a receive for each send", "correct the plan")
    for (rank, block), wanted in goal.items():
        found = held.get((rank, block))
        if found != wanted:
            text = f"block {block} of rank {rank} with the values of {_ranks(found)}"
            raise CollectiveError(where, text, f"those of {_ranks(wanted)}", "correct the plan")
    return Proof(frozenset(completing), frozenset(partial))


def _do(
    rank: int,
    step: Step,
    held: dict[tuple[int, int], Contribution],
    queues: dict[tuple[int, int], deque[tuple[int, Contribution]]],
    where: str,
) -> Contribution | None:
    """Whose values the message has; None: it has not come yet."""
    place = rank, step.block
    if step.move is Move.SEND:
        if place not in held:
            found = f"rank {rank} sends block {step.block}, which it does not have"
            raise CollectiveError(where, found, "a block with values", "correct the plan")
        queues.setdefault((rank, step.peer), deque()).append((step.block, held[place]))
        return held[place]
    queue = queues.get((step.peer, rank))
    if not queue:
        return None
    block, values = queue.popleft()
    if block != step.block:
        found = f"rank {rank} gets block {block} from rank {step.peer}"
        raise CollectiveError(where, found, f"block {step.block}, as its step says", "correct it")
    if step.move is Move.COMBINE:
        mine = held.get(place, frozenset())
        if mine & values:
            found = f"rank {rank} adds the values of {_ranks(mine & values)} to block {block} twice"
            raise CollectiveError(where, found, "each once", "correct the plan")
        held[place] = mine | values
    else:
        held[place] = values
    return values


def _ranks(ranks: Iterable[int] | None) -> str:
    return "nobody" if not ranks else "ranks " + ", ".join(map(str, sorted(ranks)))


Blocks = Sequence[int]


class Script:
    """Messages by turn; within a turn, sends before receives."""

    def __init__(self, num_ranks: int, num_blocks: int) -> None:
        self._steps: list[list[Step]] = [[] for _ in range(num_ranks)]
        self._num_blocks = num_blocks

    def move(self, turn: int, source: int, target: int, blocks: Blocks, *, combines: bool) -> None:
        """Blocks go from one rank to another."""
        receive = Move.COMBINE if combines else Move.TAKE
        for block in blocks:
            self._steps[source].append(Step(Move.SEND, target, block, turn))
            self._steps[target].append(Step(receive, source, block, turn))

    def plan(self) -> Plan:
        steps = (
            sorted(steps, key=lambda step: (step.turn, step.move is not Move.SEND))
            for steps in self._steps
        )
        return Plan(self._num_blocks, tuple(map(tuple, steps)))


def ring_pass(
    script: Script, turn: int, members: Sequence[int], parts: Sequence[Blocks], *, combines: bool
) -> int:
    """Send parts around a ring from a turn on; return the next turn.

    Parts that are combined are reduced: member i ends with part i. Others are gathered: member i
    begins with part i, and all end with all.
    """
    size = len(members)
    for step in range(size - 1):
        for place, rank in enumerate(members):
            peer, part = members[(place + 1) % size], parts[(place - step - combines) % size]
            script.move(turn + step, rank, peer, part, combines=combines)
    return turn + size - 1
