"""From the steps of a rank to messages of chunks, in the order in which a program issues them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tilewright.collectives.plan import Move, Plan, Proof

COMMANDS_A_RECEIVE = 2  # and a load of what it is combined with
COMMANDS_A_SEND = 3  # a load, the send, a store
COMMANDS_A_COMBINATION = 6  # conversions before and behind the operation, a mean, a store


class Chunk(NamedTuple):
    """Neighbouring elements of a part of the buffer; equal chunks are the same elements."""

    part: int
    start: int
    size: int


class Wave(NamedTuple):
    """When a message is due: in which group, and there in which turn of the plan, which block of
    its pair in that turn, which chunk of the block.

    In every turn a chunk is so many groups later as it takes to come: others are sent meanwhile.
    Where ranks wait for their turns, as in trees and chains, blocks follow each other in the same
    way; elsewhere all blocks of a turn are in one group.
    """

    group: int
    turn: int
    block: int
    chunk: int


class Message(NamedTuple):
    """One message of a rank; ``completes``: after it the chunk has the values of all ranks;
    ``is_partial``: it has those of some, but of more than one.

    Both sides of a message have the same wave, and all ranks go through waves in order. The first
    message of all that are left can always be sent and received, however small the rings are and
    however few commands a PE may have in flight: ``Schedule.is_serial``.
    """

    move: Move
    peer: int
    chunk: Chunk
    wave: Wave
    is_last_use: bool = False
    completes: bool = False
    is_partial: bool = False
    is_replaced: bool = False  # the next message of the chunk takes another value in its place


@dataclass(frozen=True, slots=True)
class Schedule:
    """The messages of one rank, and what it holds that no message touches."""

    messages: tuple[Message, ...]
    untouched: tuple[Chunk, ...] = field(default=())
    lag: int = 0  # so many groups later what was not sent on has been waited for
    is_serial: bool = False  # messages of a wave are issued in their order, by sender


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
    round_elements: int | None,
    proof: Proof,
    lead: int = 1,
    window: int | None = None,
) -> Schedule:
    """Blocks are cut into equal chunks, and parts into rounds that run one after the other.

    How a block is cut is known to whoever has it: ranks need not know what others exchange, as long
    as that is all in one round, as it is without ``round_elements``.

    ``lead`` is how many chunks are sent while one travels. ``window`` is how many commands a PE may
    have in flight, None for any number. Receives of a wave are issued before its sends, so that
    both directions are busy. Where the window could be full of receives before the sends are
    issued, all ranks issue the messages of a wave in the order of their senders instead.
    """
    messages: list[Message] = []
    untouched: list[Chunk] = []
    first_group = 0
    if round_elements is None:
        round_elements = max(1, sum(part_sizes) * len(part_sizes))
    longest, parts = max(part_sizes, default=0), max(1, len(part_sizes))
    step = max(1, round_elements // parts)  # the same range of every part
    for low in range(0, longest, step):
        blocks = _blocks(plan.num_blocks, part_sizes, low, low + step)
        chunks = [_cut(block, max(1, -(-block.size // chunk_elements))) for block in blocks]
        due = [
            (Wave(first_group + wave.group + number, wave.turn, wave.block, number), place)
            for wave, place in waves_of(plan, rank, lead, max(map(len, chunks), default=0))
            for number, chunk in enumerate(chunks[plan.steps[rank][place].block])
            if chunk.size
        ]
        messages += _in_order(plan, rank, chunks, proof, due)
        first_group += plan.num_turns * lead + plan.blocks_per_turn * max(map(len, chunks))
        touched = {step.block for step in plan.steps[rank]}
        untouched += [
            chunk
            for place, block in enumerate(chunks)
            if place not in touched
            for chunk in block
            if chunk.size
        ]
    is_serial = window is not None and window <= _most_commands(messages)
    if is_serial:
        messages.sort(key=lambda each: (each.wave, rank if each.move is Move.SEND else each.peer))
    return Schedule(tuple(messages), tuple(untouched), lag_of(plan, lead), is_serial)


def _most_commands(messages: Sequence[Message]) -> int:
    """Return the most commands from the first receive of a wave to its last send, at least."""
    most = 0
    arriving: Counter[Chunk] = Counter()
    for _, of_wave in groupby(messages, attrgetter("wave")):
        wave = list(of_wave)
        receives = [message for message in wave if message.move is not Move.SEND]
        sends = [message for message in wave if message.move is Move.SEND]
        if receives and sends:
            combined = sum(arriving[message.chunk] for message in sends)
            count = COMMANDS_A_RECEIVE * len(receives) + COMMANDS_A_SEND * len(sends)
            most = max(most, count + COMMANDS_A_COMBINATION * combined)
        for message in sends:
            arriving.pop(message.chunk, None)
        arriving.update(message.chunk for message in receives)
    return most


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
    proof: Proof,
    due: Iterable[tuple[Wave, int]],
) -> list[Message]:
    steps = plan.steps[rank]
    messages: list[Message] = []
    following: dict[Chunk, Move] = {}  # what the chunk's next message does
    for wave, place in sorted(due, reverse=True):
        step = steps[place]
        chunk = chunks[step.block][wave.chunk]
        messages.append(
            Message(
                step.move,
                step.peer,
                chunk,
                wave,
                is_last_use=chunk not in following,
                completes=(rank, place) in proof.completing,
                is_partial=(rank, place) in proof.partial,
                is_replaced=following.get(chunk) is Move.TAKE,
            )
        )
        following[chunk] = step.move
    return messages[::-1]


def waves_of(plan: Plan, rank: int, lead: int, num_chunks: int = 1) -> Iterator[tuple[Wave, int]]:
    """The waves of the first chunks of a rank's steps, and the places of these."""
    before: Counter[tuple[int, int, bool]] = Counter()  # blocks of a pair in a turn, either way
    for place, step in enumerate(plan.steps[rank]):
        pair = step.turn, step.peer, step.move is Move.SEND
        block = before[pair]
        before[pair] += 1
        group = step.turn * lead
        if plan.is_staggered:  # a block has one place in all turns: what it receives comes first
            group += step.block * plan.blocks_per_turn // plan.num_blocks * num_chunks
        yield Wave(group, step.turn, block, 0), place


def block_messages(plan: Plan, rank: int, lead: int) -> list[Message]:
    """Return the messages of a rank if every block is one chunk, which starts at its number."""
    chunks = [[Chunk(0, block, 1)] for block in range(plan.num_blocks)]
    return _in_order(plan, rank, chunks, Proof(), waves_of(plan, rank, lead))


def lag_of(plan: Plan, lead: int) -> int:
    """So many groups later what was not sent on is waited for: a turn, or two that overlap."""
    return 2 * lead if plan.is_staggered else lead - 1
