"""From the steps of a rank to messages of chunks, in the order in which a program issues them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.collectives.plan import Move, Plan

__all__ = ("Chunk", "Job", "Message", "Schedule", "build_schedule")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring elements of a part of the buffer; equal chunks are the same elements."""

    part: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a rank; ``completes``: after it the chunk has the values of all ranks.

    Both sides of a message have the same *wave*. A rank that issues all receives of a wave before
    it sends can always be sent to by those who are not ahead of it, however small the rings are.
    """

    move: Move
    peer: int
    chunk: Chunk
    wave: int
    is_last_use: bool = False
    completes: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """The messages of one rank, and what it holds that no message touches."""

    messages: tuple[Message, ...]
    untouched: tuple[Chunk, ...] = field(default=())

    @property
    def num_waves(self) -> int:
        return self.messages[-1].wave + 1 if self.messages else 0


@dataclass(frozen=True, slots=True)
class Job:
    """The schedule of one PE, and by part the first of its elements in what the kernel is given."""

    schedule: Schedule
    source_starts: tuple[int, ...]
    target_starts: tuple[int, ...]


def build_schedule(
    plan: Plan,
    rank: int,
    part_sizes: Sequence[int],
    *,
    chunk_elements: int,
    round_elements: int,
    completing: frozenset[tuple[int, int]],
) -> Schedule:
    """Blocks are cut into equal chunks, and parts into rounds that run one after the other.

    How a block is cut is known to whoever has it: ranks need not know what others exchange, as long
    as that is all in one round.

    ``completing`` are the places among the rank's steps after which a block is complete.
    """
    messages: list[Message] = []
    untouched: list[Chunk] = []
    wave = 0
    for low, high in _rounds(part_sizes, round_elements):
        blocks = _blocks(plan.num_blocks, part_sizes, low, high)
        chunks = [_cut(block, max(1, -(-block.size // chunk_elements))) for block in blocks]
        num_chunks = max(map(len, chunks), default=0)
        messages += _in_order(plan, rank, chunks, completing, wave)
        wave += plan.num_turns + num_chunks
        touched = {step.block for step in plan.steps[rank]}
        untouched += [
            chunk
            for number, block in enumerate(chunks)
            if number not in touched
            for chunk in block
            if chunk.size
        ]
    return Schedule(tuple(messages), tuple(untouched))


def _rounds(part_sizes: Sequence[int], round_elements: int) -> list[tuple[int, int]]:
    """The same range of every part, so that a round has at most so many elements."""
    longest = max(part_sizes, default=0)
    step = max(1, round_elements // max(1, len(part_sizes)))
    return [(low, low + step) for low in range(0, longest, step)]


def _blocks(num_blocks: int, part_sizes: Sequence[int], low: int, high: int) -> list[Chunk]:
    """The blocks of a round; the first ones of a part are one longer where it is uneven."""
    blocks_of_part = num_blocks // len(part_sizes)
    blocks = []
    for part, size in enumerate(part_sizes):
        first, last = min(low, size), min(high, size)
        blocks += [
            Chunk(part, first + inside.start, inside.size)
            for inside in _cut(Chunk(part, 0, last - first), blocks_of_part)
        ]
    return blocks


def _cut(whole: Chunk, count: int) -> list[Chunk]:
    size, longer = divmod(whole.size, count)
    starts = [whole.start + size * place + min(place, longer) for place in range(count + 1)]
    return [Chunk(whole.part, starts[i], starts[i + 1] - starts[i]) for i in range(count)]


def _in_order(
    plan: Plan,
    rank: int,
    chunks: Sequence[Sequence[Chunk]],
    completing: frozenset[tuple[int, int]],
    first_wave: int,
) -> list[Message]:
    """Chunk c of turn t is in wave t + c: the same order on both sides of every message."""
    due = sorted(
        (step.turn + number, step.turn, place, number)
        for place, step in enumerate(plan.steps[rank])
        for number, chunk in enumerate(chunks[step.block])
        if chunk.size
    )
    steps = plan.steps[rank]
    last_use = {
        chunks[steps[place].block][number]: at for at, (_, _, place, number) in enumerate(due)
    }
    return [
        Message(
            steps[place].move,
            steps[place].peer,
            chunk := chunks[steps[place].block][number],
            first_wave + wave,
            is_last_use=last_use[chunk] == at,
            completes=(rank, place) in completing,
        )
        for at, (wave, _, place, number) in enumerate(due)
    ]
