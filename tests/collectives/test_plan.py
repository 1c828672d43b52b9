from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation, goal_of, start_of
from tilewright.collectives.plan import (
    Move,
    Plan,
    Proof,
    Script,
    Step,
    check_plan,
    ring_pass,
)
from tilewright.errors import CollectiveError

SEND, TAKE, COMBINE = Move.SEND, Move.TAKE, Move.COMBINE


def check(plan: Plan, operation: Operation) -> Proof:
    call = Call(operation, plan.num_ranks)
    start, goal = start_of(call, plan.num_blocks), goal_of(call, plan.num_blocks)
    return check_plan(plan, start, goal, "a plan")


def ring(num_ranks: int) -> Plan:
    script = Script(num_ranks, num_ranks)
    members, parts = list(range(num_ranks)), [[rank] for rank in range(num_ranks)]
    turn = ring_pass(script, 0, members, parts, combines=True)
    ring_pass(script, turn, members, parts, combines=False)
    return script.plan()


@given(st.integers(2, 16))
def test_a_ring_is_proved_and_completes_each_block_once(num_ranks: int) -> None:
    assert len(check(ring(num_ranks), Operation.ALL_REDUCE).completing) == num_ranks


@given(st.integers(2, 16))
def test_a_rank_of_a_ring_sends_its_own_block_then_sums_of_some_then_those_of_all(
    num_ranks: int,
) -> None:
    plan = ring(num_ranks)
    partial = check(plan, Operation.ALL_REDUCE).partial
    turns = [plan.steps[rank][place].turn for rank, place in partial]
    assert sorted(set(turns)) == list(range(1, num_ranks - 1))
    assert len(turns) == 2 * num_ranks * (num_ranks - 2)  # both sides of each message


def without(plan: Plan, rank: int, place: int) -> Plan:
    steps = list(map(list, plan.steps))
    del steps[rank][place]
    return Plan(plan.num_blocks, tuple(map(tuple, steps)))


@given(st.integers(2, 8), st.data())
def test_no_step_of_a_ring_can_be_left_out(num_ranks: int, data: st.DataObject) -> None:
    plan = ring(num_ranks)
    rank = data.draw(st.integers(0, num_ranks - 1))
    place = data.draw(st.integers(0, len(plan.steps[rank]) - 1))
    with pytest.raises(CollectiveError):
        check(without(plan, rank, place), Operation.ALL_REDUCE)


@given(st.integers(2, 8), st.data())
def test_a_block_that_is_taken_in_the_place_of_combined_is_noticed(
    num_ranks: int, data: st.DataObject
) -> None:
    plan = ring(num_ranks)
    rank = data.draw(st.integers(0, num_ranks - 1))
    places = [i for i, step in enumerate(plan.steps[rank]) if step.move is COMBINE]
    place = data.draw(st.sampled_from(places))
    steps = list(map(list, plan.steps))
    old = steps[rank][place]
    steps[rank][place] = Step(TAKE, old.peer, old.block, old.turn)
    with pytest.raises(CollectiveError, match="with the values of"):
        check(Plan(plan.num_blocks, tuple(map(tuple, steps))), Operation.ALL_REDUCE)


def two(first: list[Step], second: list[Step]) -> Callable[[], Plan]:
    return lambda: Plan(2, (tuple(first), tuple(second)))


EXCHANGE = [Step(SEND, 1, 0, 0), Step(COMBINE, 1, 0, 0)]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (two([Step(COMBINE, 1, 0, 0)], [Step(COMBINE, 0, 0, 0)]), "waits for block 0"),
        (two([Step(SEND, 1, 0, 0)], []), "rank 1 never receives"),
        (two([Step(SEND, 1, 0, 0)], [Step(COMBINE, 0, 1, 0)]), "gets block 0 from rank 0"),
        (
            two(
                [Step(SEND, 1, 0, 0), Step(SEND, 1, 0, 1)],
                [Step(COMBINE, 0, 0, 0), Step(COMBINE, 0, 0, 1)],
            ),
            "twice",
        ),
        (two([], []), "block 0 of rank 0 with the values of ranks 0"),
    ],
)
def test_a_plan_that_is_stuck_or_wrong_is_refused(plan: Callable[[], Plan], words: str) -> None:
    with pytest.raises(CollectiveError, match=words):
        check(plan(), Operation.ALL_REDUCE)


def test_a_rank_cannot_send_what_it_does_not_have() -> None:
    plan = Plan(2, ((Step(TAKE, 1, 0, 0),), (Step(SEND, 0, 0, 0),)))
    with pytest.raises(CollectiveError, match="rank 1 sends block 0, which it does not have"):
        check(plan, Operation.BROADCAST)


@given(st.integers(2, 16))
def test_all_ranks_of_a_ring_send_in_every_turn(num_ranks: int) -> None:
    assert not ring(num_ranks).is_staggered


def test_a_rank_of_a_ring_has_one_receiver_and_of_a_direct_exchange_all_others() -> None:
    call = Call(Operation.ALL_REDUCE, 5)
    plans = {name: checked_plan(ALGORITHMS[name], call, 0).plan for name in ("ring", "direct")}
    assert {name: plan.most_receivers for name, plan in plans.items()} == {"ring": 1, "direct": 4}


def test_a_chain_is_staggered() -> None:
    chain = Script(3, 1)
    chain.move(0, 0, 1, [0], combines=False)
    chain.move(1, 1, 2, [0], combines=False)
    assert chain.plan().is_staggered


def test_blocks_of_a_turn_are_counted_for_each_peer() -> None:
    script = Script(3, 4)
    script.move(0, 0, 1, [0, 1, 2], combines=True)
    script.move(0, 0, 2, [3], combines=True)
    script.move(1, 0, 1, [3], combines=True)
    assert script.plan().blocks_per_turn == 3
