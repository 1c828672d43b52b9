"""Rows and columns of a grid of ranks: rings in one dimension, then in the other."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from tilewright.collectives.algorithm import SCATTERING, Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script, ring_pass

NUM_SHARES = 16
"""Lanes are dealt over the two orders of dimensions by sixteenths."""


def plan_torus_2d(call: Call, lane: int) -> Plan:
    """Neighbours along a dimension are next to each other, the last next to the first."""
    return _plan(call, lane, folded=False)


def plan_mesh_2d(call: Call, lane: int) -> Plan:
    """As the torus, where the last is not next to the first: rings go there by every second rank
    and come back by the others, so no message travels more than two links.
    """
    return _plan(call, lane, folded=True)


def grid_shape(call: Call) -> tuple[int, int]:
    """Rows and columns: as the ranks of the call lie, else as square as can be."""
    if len(call.shape) == 2:
        return call.shape[0], call.shape[1]
    ranks = call.num_ranks
    rows = next(rows for rows in range(isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def row_first_share(rows: int, columns: int) -> Fraction:
    """The share of lanes that goes along rows first, so that both dimensions are equally busy then.

    Those lanes send (c-1)/c of their shards along rows while the others send (r-1)/r along columns;
    afterwards each group has the other's links, for less. Lanes run side by side turn after turn,
    so this is better than a share that equals the sums of both phases.

    >>> row_first_share(2, 3)
    Fraction(3, 7)
    """
    across, down = Fraction(columns - 1, columns), Fraction(rows - 1, rows)
    return down / (across + down) if across and down else Fraction(1, 2)


def is_row_first(lane: int, rows: int, columns: int) -> bool:
    """Four neighbouring lanes go alike: they differ in parallel links and directions."""
    place = lane // 4 * 7 % NUM_SHARES  # a permutation that spreads the chosen lanes
    return place < round(row_first_share(rows, columns) * NUM_SHARES)


def _plan(call: Call, lane: int, *, folded: bool) -> Plan:
    rows, columns = grid_shape(call)
    script = Script(call.num_ranks, call.num_ranks)
    first, second = (
        [[row * columns + column for column in range(columns)] for row in range(rows)],
        [[row * columns + column for row in range(rows)] for column in range(columns)],
    )
    if not is_row_first(lane, rows, columns):
        first, second = second, first
    reverse = lane // 2 % 2 == 1
    wide = [_line(line, _crossing(line, second), folded, reverse) for line in first]
    narrow = [_line(line, [[rank] for rank in line], folded, reverse) for line in second]
    turn = 0
    if call.operation is not Operation.ALL_GATHER:
        for lines in (wide, narrow):
            turn = max(ring_pass(script, turn, *line, combines=True) for line in lines)
    if call.operation is not Operation.REDUCE_SCATTER:
        for lines in (narrow, wide):
            turn = max(ring_pass(script, turn, *line, combines=False) for line in lines)
    return script.plan()


def _crossing(line: Sequence[int], others: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each rank of a line the blocks of the line that crosses it there."""
    return [next(list(other) for other in others if rank in other) for rank in line]


def _line(
    line: Sequence[int], parts: Sequence[Sequence[int]], folded: bool, reverse: bool
) -> tuple[list[int], list[Sequence[int]]]:
    order = list(range(len(line)))
    if folded:
        order = order[::2] + order[1::2][::-1]
    if reverse:
        order = order[:1] + order[:0:-1]
    return [line[place] for place in order], [parts[place] for place in order]


ALGORITHMS = (
    Algorithm("torus_2d", SCATTERING, plan_torus_2d, preference=4),
    Algorithm("mesh_2d", SCATTERING, plan_mesh_2d, preference=5),
)
