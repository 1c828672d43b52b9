"""Three levels, each in its own way: PEs of a cube, cubes of a SIP, SIPs.

PEs of a cube share the sum out among them, around a ring. Each then hands its part on from cube to
cube, along rows and then along the middle column to the centre, where both halves of the mesh meet.
The centres of the SIPs go around a ring. Results come back the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script, ring_pass


@dataclass(frozen=True, slots=True)
class _Levels:
    """Ranks count through PEs first, then cubes along rows, then SIPs."""

    sips: int
    rows: int
    columns: int
    pes: int

    def rank(self, sip: int, row: int, column: int, pe: int) -> int:
        return ((sip * self.rows + row) * self.columns + column) * self.pes + pe

    def blocks(self, pe: int) -> range:
        """What a PE sums for its cube: a part for each SIP, which the centres share."""
        return range(pe * self.sips, (pe + 1) * self.sips)

    @property
    def centre(self) -> tuple[int, int]:
        """Its row and column."""
        return self.rows // 2, self.columns // 2


Edge = tuple[int, int, int, int]  # from a row and column of cubes to another


def plan_hierarchical(call: Call, lane: int) -> Plan:
    """Along the levels that ranks lie in; every second pair of lanes goes around the other way."""
    levels = _levels(call)
    script = Script(call.num_ranks, levels.pes * levels.sips)
    reverse = lane // 2 % 2 == 1
    turn = _in_cubes(script, 0, levels, reverse, reduces=True)
    inward = list(_inward(levels))
    for edges in inward:
        turn = _between_cubes(script, turn, levels, edges, reduces=True)
    turn = _between_sips(script, turn, levels, reverse)
    for edges in reversed(inward):
        back = [(to_row, to_column, row, column) for row, column, to_row, to_column in edges]
        turn = _between_cubes(script, turn, levels, back, reduces=False)
    _in_cubes(script, turn, levels, reverse, reduces=False)
    return script.plan()


def _levels(call: Call) -> _Levels:
    """All four; rows and columns of SIPs take the place of cubes; else all are PEs of one cube."""
    match call.shape:
        case (sips, rows, columns, pes):
            return _Levels(sips, rows, columns, pes)
        case (rows, columns):
            return _Levels(1, rows, columns, 1)
        case _:
            return _Levels(1, 1, 1, call.num_ranks)


def _in_cubes(script: Script, turn: int, levels: _Levels, reverse: bool, *, reduces: bool) -> int:
    pes = _ring(range(levels.pes), reverse)
    parts = [levels.blocks(pe) for pe in pes]
    for cube in product(range(levels.sips), range(levels.rows), range(levels.columns)):
        members = [levels.rank(*cube, pe) for pe in pes]
        ring_pass(script, turn, members, parts, combines=reduces)
    return turn + levels.pes - 1


def _inward(levels: _Levels) -> Iterator[list[Edge]]:
    """Turn by turn, the steps to the centre: farthest cubes first, rows before columns."""
    middle_row, middle = levels.centre
    for column, towards in _approach(levels.columns, middle):
        yield [
            (row, source, row, target)
            for source, target in zip(column, towards, strict=True)
            for row in range(levels.rows)
        ]
    for row, towards in _approach(levels.rows, middle_row):
        yield [
            (source, middle, target, middle) for source, target in zip(row, towards, strict=True)
        ]


def _approach(size: int, middle: int) -> Iterator[tuple[list[int], list[int]]]:
    """Places at one distance from the middle, and the places one step nearer."""
    for distance in range(max(middle, size - 1 - middle), 0, -1):
        places = [place for place in (middle - distance, middle + distance) if 0 <= place < size]
        yield places, [place + 1 if place < middle else place - 1 for place in places]


def _between_cubes(
    script: Script, turn: int, levels: _Levels, edges: Sequence[Edge], *, reduces: bool
) -> int:
    for sip in range(levels.sips):
        for row, column, to_row, to_column in edges:
            for pe in range(levels.pes):
                source = levels.rank(sip, row, column, pe)
                target = levels.rank(sip, to_row, to_column, pe)
                script.move(turn, source, target, levels.blocks(pe), combines=reduces)
    return turn + 1


def _between_sips(script: Script, turn: int, levels: _Levels, reverse: bool) -> int:
    row, column = levels.centre
    sips = _ring(range(levels.sips), reverse)
    for pe in range(levels.pes):
        members = [levels.rank(sip, row, column, pe) for sip in sips]
        parts = [[levels.blocks(pe)[sip]] for sip in sips]
        following = ring_pass(script, turn, members, parts, combines=True)
        ring_pass(script, following, members, parts, combines=False)
    return turn + 2 * (levels.sips - 1)


def _ring(places: range, reverse: bool) -> list[int]:
    return [*places[:1], *places[:0:-1]] if reverse else list(places)


_OPERATIONS = frozenset((Operation.ALL_REDUCE,))
ALGORITHMS = (
    Algorithm("hierarchical", _OPERATIONS, plan_hierarchical, preference=7, suits_many=True),
)
