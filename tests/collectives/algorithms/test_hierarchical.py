from hypothesis import given
from hypothesis import strategies as st

from tilewright.collectives.algorithm import checked_plan
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move

HIERARCHICAL = ALGORITHMS["hierarchical"]


def call_of(sips: int, rows: int, columns: int, pes: int) -> Call:
    shape = (sips, rows, columns, pes)
    return Call(Operation.ALL_REDUCE, sips * rows * columns * pes, shape=shape)


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3)
)
def test_sums_are_right_for_every_count_of_levels(
    sips: int, rows: int, columns: int, pes: int, lane: int
) -> None:
    call = call_of(sips, rows, columns, pes)
    assert checked_plan(HIERARCHICAL, call, lane).plan.num_ranks == call.num_ranks


def test_only_the_centre_cubes_exchange_between_sips() -> None:
    plan = checked_plan(HIERARCHICAL, call_of(2, 4, 4, 2), 0).plan
    crossing = {
        rank // 2 % 16
        for rank, steps in enumerate(plan.steps)
        for step in steps
        if step.move is Move.SEND and step.peer // 32 != rank // 32
    }
    assert crossing == {10}


def test_both_halves_of_a_mesh_converge_at_once() -> None:
    """Two turns along a row of 4 and two along the column, there and back."""
    plan = checked_plan(HIERARCHICAL, call_of(1, 4, 4, 1), 0).plan
    assert plan.num_turns == 8


def test_sips_in_rows_and_columns_meet_at_the_centre_one() -> None:
    plan = checked_plan(HIERARCHICAL, Call(Operation.ALL_REDUCE, 9, shape=(3, 3)), 0).plan
    assert {step.peer for step in plan.steps[4]} == {1, 3, 5, 7}


def test_ranks_of_no_known_shape_go_around_one_ring() -> None:
    plan = checked_plan(HIERARCHICAL, Call(Operation.ALL_REDUCE, 6), 0).plan
    assert plan.num_turns == 2 * 5
