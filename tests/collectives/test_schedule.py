from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collectives.test_plan import ring
from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move, Proof
from tilewright.collectives.schedule import Chunk, Message, Schedule, Wave, build_schedule, lag_of

RANKS = st.integers(2, 7)
SIZES = st.integers(0, 200)
LIMITS = st.integers(1, 60)


def ring_schedules(num_ranks: int, size: int, chunk: int, round_size: int) -> list[Schedule]:
    plan = ring(num_ranks)
    return [
        build_schedule(
            plan, rank, [size], chunk_elements=chunk, round_elements=round_size,
            proof=Proof(),
        )
        for rank in range(num_ranks)
    ]  # fmt: skip


def between(messages: tuple[Message, ...], peer: int, *, sends: bool) -> list[tuple[Chunk, Wave]]:
    return [
        (message.chunk, message.wave)
        for message in messages
        if message.peer == peer and (message.move is Move.SEND) is sends
    ]


@given(RANKS, SIZES, LIMITS, LIMITS)
def test_both_sides_of_a_pair_have_the_same_chunks_and_waves(
    num_ranks: int, size: int, chunk: int, round_size: int
) -> None:
    schedules = ring_schedules(num_ranks, size, chunk, round_size)
    for sender in range(num_ranks):
        for receiver in range(num_ranks):
            sent = between(schedules[sender].messages, receiver, sends=True)
            assert sent == between(schedules[receiver].messages, sender, sends=False)


@given(RANKS, SIZES, LIMITS, LIMITS)
def test_chunks_cover_every_element_and_none_is_too_long(
    num_ranks: int, size: int, chunk: int, round_size: int
) -> None:
    for schedule in ring_schedules(num_ranks, size, chunk, round_size):
        chunks = {message.chunk for message in schedule.messages} | set(schedule.untouched)
        elements = Counter(
            element for each in chunks for element in range(each.start, each.start + each.size)
        )
        assert elements == Counter(range(size))
        assert all(0 < each.size <= chunk for each in chunks)


@given(RANKS, SIZES, LIMITS, LIMITS)
def test_waves_never_go_back_and_each_chunk_has_one_last_use(
    num_ranks: int, size: int, chunk: int, round_size: int
) -> None:
    for schedule in ring_schedules(num_ranks, size, chunk, round_size):
        assert all(a.wave <= b.wave for a, b in pairwise(schedule.messages))
        last = {message.chunk: number for number, message in enumerate(schedule.messages)}
        for number, message in enumerate(schedule.messages):
            assert message.is_last_use == (last[message.chunk] == number)


@given(RANKS, SIZES, LIMITS, LIMITS)
def test_a_chunk_is_let_go_if_another_value_takes_its_place(
    num_ranks: int, size: int, chunk: int, round_size: int
) -> None:
    for schedule in ring_schedules(num_ranks, size, chunk, round_size):
        following: dict[Chunk, Move] = {}
        for message in reversed(schedule.messages):
            assert message.is_replaced == (following.get(message.chunk) is Move.TAKE)
            following[message.chunk] = message.move


@given(RANKS, st.integers(1, 60), LIMITS)
def test_a_round_has_its_share_of_every_part(num_ranks: int, size: int, round_size: int) -> None:
    """Parts of an all-gather are held together, so all of them count."""
    call = Call(Operation.ALL_GATHER, num_ranks)
    plan = checked_plan(ALGORITHMS["ring"], call, 0).plan
    schedule = build_schedule(
        plan, 0, [size] * num_ranks, chunk_elements=10**9, round_elements=round_size,
        proof=Proof(),
    )  # fmt: skip
    longest = max(message.chunk.size for message in schedule.messages)
    assert longest == min(size, max(1, round_size // num_ranks))


@pytest.mark.parametrize(("name", "lag"), [("ring", 4), ("double_tree", 10)])
def test_what_is_not_sent_on_is_waited_for_later_where_ranks_take_turns(
    name: str, lag: int
) -> None:
    plan = checked_plan(ALGORITHMS[name], Call(Operation.ALL_REDUCE, 8), 0).plan
    assert lag_of(plan, lead=5) == lag


@given(RANKS, st.data())
def test_an_exchange_of_any_sizes_is_known_to_its_two_ranks_alone(
    num_ranks: int, data: st.DataObject
) -> None:
    sizes = [data.draw(SIZES) for _ in range(num_ranks**2)]
    call = Call(Operation.ALL_TO_ALL, num_ranks)
    plan = checked_plan(ALGORITHMS["direct"], call, 0).plan
    schedules = []
    for rank in range(num_ranks):
        known = [size if rank in divmod(part, num_ranks) else 0 for part, size in enumerate(sizes)]
        schedules.append(
            build_schedule(
                plan, rank, known, chunk_elements=16, round_elements=10**9, proof=Proof()
            )
        )
    for sender in range(num_ranks):
        for receiver in range(num_ranks):
            sent = between(schedules[sender].messages, receiver, sends=True)
            assert sent == between(schedules[receiver].messages, sender, sends=False)
