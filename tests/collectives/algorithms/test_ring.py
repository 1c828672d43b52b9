"""Ranks on a line whose ends are apart: plans that send to neighbours alone, and their values."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collectives.calls import CALLS, Table, inputs_of
from tests.collectives.worlds import run_ranks
from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.algorithms.ring import is_line
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move, Plan

RING = ALGORITHMS["ring"]


def plan_of(operation: Operation, ranks: int, root: int = 0) -> Plan:
    call = Call(operation, ranks, root, shape=(1, ranks), is_open=True)
    return checked_plan(RING, call, 0).plan


def sent_over_links(plan: Plan) -> Counter[tuple[int, int]]:
    """Blocks by sender and receiver."""
    return Counter(
        (rank, step.peer)
        for rank, steps in enumerate(plan.steps)
        for step in steps
        if step.move is Move.SEND
    )


@given(
    st.sampled_from(sorted(RING.operations, key=lambda operation: operation.value)),
    st.integers(3, 16),
    st.data(),
)
def test_every_message_on_a_line_goes_to_a_neighbour(
    operation: Operation, ranks: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, ranks - 1)) if operation.has_root else 0
    sent = sent_over_links(plan_of(operation, ranks, root))
    assert sent
    assert {abs(rank - peer) for rank, peer in sent} == {1}


@given(st.integers(3, 16))
def test_every_link_of_a_line_carries_an_all_reduced_buffer_once_each_way(ranks: int) -> None:
    plan = plan_of(Operation.ALL_REDUCE, ranks)
    assert set(sent_over_links(plan).values()) == {plan.num_blocks}
    assert len(sent_over_links(plan)) == 2 * (ranks - 1)


@pytest.mark.parametrize("operation", [Operation.REDUCE_SCATTER, Operation.ALL_GATHER])
@pytest.mark.parametrize("ranks", [3, 8])
def test_parts_reach_their_owners_in_as_many_turns_as_around_a_ring(
    operation: Operation, ranks: int
) -> None:
    plan = plan_of(operation, ranks)
    assert plan.num_turns == ranks - 1
    assert plan.blocks_per_turn == 1


@pytest.mark.parametrize(("ranks", "num_turns"), [(7, 6), (8, 8)])
def test_sums_meet_in_the_middle(ranks: int, num_turns: int) -> None:
    """There and back by half of the links, or one more."""
    assert plan_of(Operation.ALL_REDUCE, ranks).num_turns == num_turns


@pytest.mark.parametrize(
    ("ranks", "shape", "is_open", "expected"),
    [
        (8, (1, 8), True, True),
        (8, (8, 1), True, True),
        (8, (1, 8), False, False),  # a ring
        (8, (2, 4), True, False),  # a mesh
        (2, (1, 2), True, False),  # all are neighbours
    ],
)
def test_a_line_is_open_and_has_one_row_or_column(
    ranks: int, shape: tuple[int, ...], is_open: bool, expected: bool
) -> None:
    call = Call(Operation.ALL_REDUCE, ranks, shape=shape, is_open=is_open)
    assert is_line(call) is expected


@pytest.mark.parametrize(
    "name", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"]
)
@pytest.mark.parametrize("ranks", [3])
def test_calls_on_a_line_give_the_values_of_numpy(name: str, ranks: int) -> None:
    _, call = CALLS[name]
    inputs = inputs_of(np.random.default_rng(ranks), (4 * ranks, 5), ranks, "f32", "sum")
    ended = []

    def program(rank: int, torch: Any, dist: Any) -> None:
        table = Table(torch, dist, "f32", "rows", "sum", rank, ranks)
        found, expected = call(table, inputs)
        assert np.array_equal(found, expected)
        ended.append(rank)

    fabric = ("fabric.kind=mesh", f"fabric.columns={ranks}")
    run_ranks(ranks, program, fabric=fabric, algorithm="ring", sanitize=True)
    assert sorted(ended) == list(range(ranks))
