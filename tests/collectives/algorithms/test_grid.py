from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.collectives.algorithms.grid import (
    grid_shape,
    is_row_first,
    plan_torus_2d,
    row_first_share,
)
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Move

NUM_LANES = 64


def sent_blocks(rows: int, columns: int, num_turns: int | None = None) -> Counter[str]:
    """Blocks that leave rank 0 over all lanes in the first turns, by dimension and direction."""
    call = Call(Operation.ALL_REDUCE, rows * columns, shape=(rows, columns))
    sent: Counter[str] = Counter()
    for lane in range(NUM_LANES):
        for step in plan_torus_2d(call, lane).steps[0]:
            if step.move is Move.SEND and (num_turns is None or step.turn < num_turns):
                row, column = divmod(step.peer, columns)
                if row:
                    sent["column"] += 1
                else:
                    sent["east" if column == 1 else "west"] += 1
    return sent


@pytest.mark.parametrize("size", [2, 3, 4])
def test_lanes_together_keep_both_dimensions_of_a_square_torus_equally_busy(size: int) -> None:
    sent = sent_blocks(size, size)
    assert sent["column"] == sent["east"] + sent["west"]


def test_in_the_first_phase_rows_and_columns_of_a_torus_are_equally_busy() -> None:
    """Of 64 lanes 28 send 4 of 6 blocks along rows in 2 turns, 36 send 3 along columns in one."""
    first = sent_blocks(2, 3, num_turns=1)["column"], sent_blocks(2, 3, num_turns=2)
    assert (first[0], first[1]["east"] + first[1]["west"] - 36) == (36 * 3, 28 * 4)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (2, 4), (4, 4)])
def test_lanes_use_both_directions_of_a_row_alike(rows: int, columns: int) -> None:
    sent = sent_blocks(rows, columns)
    assert sent["east"] == sent["west"]


@given(st.integers(2, 9), st.integers(2, 9))
def test_the_share_of_lanes_balances_the_first_phase(rows: int, columns: int) -> None:
    share = row_first_share(rows, columns)
    assert share * Fraction(columns - 1, columns) == (1 - share) * Fraction(rows - 1, rows)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 15))
def test_lanes_of_one_order_have_both_parities_and_both_directions(
    rows: int, columns: int, quarter: int
) -> None:
    lanes = range(4 * quarter, 4 * quarter + 4)
    assert len({is_row_first(lane, rows, columns) for lane in lanes}) == 1


def test_a_grid_is_that_of_the_call_or_as_square_as_can_be() -> None:
    assert grid_shape(Call(Operation.ALL_REDUCE, 8, shape=(1, 8))) == (1, 8)
    assert grid_shape(Call(Operation.ALL_REDUCE, 12)) == (3, 4)
