"""Rows and columns of a grid of ranks: rings in one dimension, then in the other."""

from collections.abc import Sequence
from math import isqrt

from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan
from tilewright.collectives.script import Script, ring_gather, ring_reduce

__all__ = ("grid_shape", "plan_mesh_2d", "plan_torus_2d")


def plan_torus_2d(call: Call, lane: int) -> Plan:
    """Neighbours along a dimension are next to each other, the last next to the first."""
    return _plan(call, lane, folded=False)


def plan_mesh_2d(call: Call, lane: int) -> Plan:
    """As the torus, where the last is not next to the first: rings go there by every second rank
    and come back by the others, so no message travels more than two links.
    """
    return _plan(call, lane, folded=True)


def grid_shape(num_ranks: int, columns: int | None = None) -> tuple[int, int]:
    """Rows and columns, as square as can be unless the machine says it."""
    if columns is None:
        rows = next(rows for rows in range(isqrt(num_ranks), 0, -1) if num_ranks % rows == 0)
        return rows, num_ranks // rows
    return num_ranks // columns, columns


def _plan(call: Call, lane: int, *, folded: bool) -> Plan:
    """Even lanes go along rows first, odd ones along columns."""
    rows, columns = grid_shape(call.num_ranks)
    script = Script(call.num_ranks, call.num_ranks)
    lines = [
        [[row * columns + column for column in range(columns)] for row in range(rows)],
        [[row * columns + column for row in range(rows)] for column in range(columns)],
    ]
    if lane % 2:
        lines.reverse()
    first, second = lines
    reverse = lane // 2 % 2 == 1
    wide = [_line(line, _crossing(line, second), folded, reverse) for line in first]
    narrow = [_line(line, [[rank] for rank in line], folded, reverse) for line in second]
    turn = 0
    if call.operation is not Operation.ALL_GATHER:
        turn = max(ring_reduce(script, turn, *line) for line in wide)
        turn = max(ring_reduce(script, turn, *line) for line in narrow)
    if call.operation is not Operation.REDUCE_SCATTER:
        turn = max(ring_gather(script, turn, *line) for line in narrow)
        turn = max(ring_gather(script, turn, *line) for line in wide)
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
