"""Networks of wires from node to node, whose routes go along rows first."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Wire = tuple[int, int]  # from a node to another
Route = tuple[int, ...]  # of wires, by their numbers


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Links from one node to another, with the rate of each, on which bounds are counted."""

    num_nodes: int
    links: tuple[tuple[int, int, int], ...]

    def leaving(self, nodes: frozenset[int]) -> int:
        """Return the rate of all links that leave a set of nodes."""
        return sum(rate for one, other, rate in self.links if one in nodes and other not in nodes)


@dataclass(frozen=True)
class Network:
    """Nodes in rows and columns, or each joined with each.

    In a mesh a route goes along the row first and then along the column. In a torus (``wraps``),
    whose rows and columns are closed, it goes the shorter way, forwards if both are equal; one row
    of it is a ring.
    """

    rows: int
    columns: int
    wraps: bool = False
    is_full: bool = False

    @property
    def num_nodes(self) -> int:
        return self.rows * self.columns

    @cached_property
    def wires(self) -> tuple[Wire, ...]:
        nodes = range(self.num_nodes)
        if self.is_full:
            return tuple((one, other) for one in nodes for other in nodes if one != other)
        return tuple(dict.fromkeys(wire for node in nodes for wire in self._wires_of(node)))

    @cached_property
    def _numbers(self) -> dict[Wire, int]:
        return {wire: number for number, wire in enumerate(self.wires)}

    def route(self, source: int, target: int) -> Route:
        nodes = [source, target] if self.is_full else [source, *self._walk(source, target)]
        return tuple(self._numbers[wire] for wire in pairwise(nodes))

    @property
    def graph(self) -> LinkGraph:
        """Its wires, each of rate 1."""
        return LinkGraph(self.num_nodes, tuple((*wire, 1) for wire in self.wires))

    def _wires_of(self, node: int) -> Iterator[Wire]:
        row, column = divmod(node, self.columns)
        for along, (place, size) in enumerate(((column, self.columns), (row, self.rows))):
            for step in (1, -1):
                beside = place + step
                if self.wraps:
                    beside %= size
                if 0 <= beside < size and beside != place:
                    other = (row, beside) if along == 0 else (beside, column)
                    yield node, other[0] * self.columns + other[1]

    def _walk(self, source: int, target: int) -> Iterator[int]:
        from_row, from_column = divmod(source, self.columns)
        to_row, to_column = divmod(target, self.columns)
        for column in self._steps(from_column, to_column, self.columns):
            yield from_row * self.columns + column
        for row in self._steps(from_row, to_row, self.rows):
            yield row * self.columns + to_column

    def _steps(self, place: int, target: int, size: int) -> Iterator[int]:
        step = 1 if target > place else -1
        if self.wraps:
            step = 1 if (target - place) % size <= size // 2 else -1
        while place != target:
            place = (place + step) % size
            yield place


def full(num_nodes: int) -> Network:
    """A wire for each ordered pair: every message travels alone."""
    return Network(1, num_nodes, is_full=True)


def neighbour_cycle(rows: int, columns: int) -> tuple[int, ...]:
    """Nodes of a mesh in the order of a closed walk from neighbour to neighbour.

    Along row 0, then up and down the columns of the rest and back; an even number of columns.

    >>> neighbour_cycle(3, 2)
    (0, 1, 3, 5, 4, 2)
    """
    below = [
        row * columns + column
        for turn, column in enumerate(range(columns - 1, -1, -1))
        for row in (range(1, rows) if turn % 2 == 0 else range(rows - 1, 0, -1))
    ]
    return (*range(columns), *below)
