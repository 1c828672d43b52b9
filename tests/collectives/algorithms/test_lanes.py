"""What lanes do differently, so that together they keep all links busy; and in which order."""

from collections import Counter

import pytest

from tilewright.collectives.algorithms.direct import plan_direct
from tilewright.collectives.algorithms.grid import plan_mesh_2d
from tilewright.collectives.algorithms.halving import plan_halving_doubling
from tilewright.collectives.algorithms.ring import plan_bidirectional_ring, plan_ring
from tilewright.collectives.algorithms.tree import plan_double_tree
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move, Plan

ALL_REDUCE_OF_8 = Call(Operation.ALL_REDUCE, 8)


def sent_by(plan: Plan, rank: int) -> Counter[int]:
    """Blocks, by peer."""
    return Counter(step.peer for step in plan.steps[rank] if step.move is Move.SEND)


def first_peer(plan: Plan) -> int:
    return next(step.peer for step in plan.steps[0] if step.move is Move.SEND)


@pytest.mark.parametrize("parity", [0, 1])
def test_lanes_of_each_parity_go_around_a_ring_both_ways(parity: int) -> None:
    lanes = range(parity, 8, 2)
    peers = [first_peer(plan_ring(ALL_REDUCE_OF_8, lane)) for lane in lanes]
    assert Counter(peers) == {1: 2, 7: 2}


@pytest.mark.parametrize("lane", [0, 1])
def test_a_ring_in_both_directions_sends_half_each_way(lane: int) -> None:
    assert sent_by(plan_bidirectional_ring(ALL_REDUCE_OF_8, lane), 0) == {1: 14, 7: 14}


def test_a_ring_on_a_line_goes_over_two_links_at_most() -> None:
    call = Call(Operation.ALL_REDUCE, 6, shape=(1, 6))
    for lane in range(4):
        plan = plan_mesh_2d(call, lane)
        assert max(abs(rank - peer) for rank in range(6) for peer in sent_by(plan, rank)) == 2


def test_pairs_of_lanes_halve_with_different_partners_first() -> None:
    peers = [first_peer(plan_halving_doubling(ALL_REDUCE_OF_8, lane)) for lane in range(8)]
    assert peers == [1, 1, 2, 2, 4, 4, 1, 1]


@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_partner_will_hand_on_is_sent_before_what_it_keeps(turn: int) -> None:
    plan = plan_halving_doubling(ALL_REDUCE_OF_8, 0)

    def sent(rank: int, at: int) -> list[int]:
        steps = plan.steps[rank]
        return [step.block for step in steps if step.move is Move.SEND and step.turn == at]

    for rank in range(8):
        peer = next(step.peer for step in plan.steps[rank] if step.turn == turn)
        handed_on = set(sent(peer, turn + 1))
        is_handed_on = [block in handed_on for block in sent(rank, turn)]
        assert is_handed_on == sorted(is_handed_on, reverse=True)
        assert set(is_handed_on) == {True, False}


@pytest.mark.parametrize("ranks", [4, 8, 12, 16])
def test_a_rank_inside_one_tree_is_a_leaf_of_the_other(ranks: int) -> None:
    """Blocks of the two trees take turns, so their numbers differ in parity."""
    plan = plan_double_tree(Call(Operation.ALL_REDUCE, ranks), 0)
    for steps in plan.steps:
        summed = {step.block % 2 for step in steps if step.move is Move.COMBINE}
        assert len(summed) <= 1


def test_lanes_begin_a_direct_exchange_with_different_peers() -> None:
    peers = [first_peer(plan_direct(ALL_REDUCE_OF_8, lane)) for lane in range(7)]
    assert peers == [1, 2, 3, 4, 5, 6, 7]
