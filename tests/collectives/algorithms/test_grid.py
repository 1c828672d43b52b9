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

NUM_LANES = 32


def sent_blocks(rows: int, columns: int) -> Counter[str]:
    """Blocks that leave rank 0 over all lanes, by dimension and direction."""
    call = Call(Operation.ALL_REDUCE, rows * columns, shape=(rows, columns))
    sent: Counter[str] = Counter()
    for lane in range(NUM_LANES):
        for step in plan_torus_2d(call, lane).steps[0]:
            if step.move is Move.SEND:
                row, column = divmod(step.peer, columns)
                if row:
                    sent["column"] += 1
                else:
                    sent["east" if column == 1 else "west"] += 1
    return sent


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (4, 4), (3, 3)])
def test_lanes_together_keep_both_dimensions_of_a_torus_equally_busy(
    rows: int, columns: int
) -> None:
    sent = sent_blocks(rows, columns)
    assert sent["column"] == sent["east"] + sent["west"]


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (2, 4), (4, 4)])
def test_lanes_use_both_directions_of_a_row_alike(rows: int, columns: int) -> None:
    sent = sent_blocks(rows, columns)
    assert sent["east"] == sent["west"]


@given(st.integers(2, 9), st.integers(2, 9))
def test_the_share_of_lanes_balances_what_both_dimensions_carry(rows: int, columns: int) -> None:
    share = row_first_share(rows, columns)
    across = Fraction(columns - 1, columns)
    down = Fraction(rows - 1, rows)
    on_rows = share * across + (1 - share) * across / rows
    on_columns = share * down / columns + (1 - share) * down
    assert on_rows == on_columns or share in (0, 1)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 7))
def test_lanes_of_one_order_have_both_parities_and_both_directions(
    rows: int, columns: int, quarter: int
) -> None:
    lanes = range(4 * quarter, 4 * quarter + 4)
    assert len({is_row_first(lane, rows, columns) for lane in lanes}) == 1


def test_a_grid_is_that_of_the_call_or_as_square_as_can_be() -> None:
    assert grid_shape(Call(Operation.ALL_REDUCE, 8, shape=(1, 8))) == (1, 8)
    assert grid_shape(Call(Operation.ALL_REDUCE, 12)) == (3, 4)
