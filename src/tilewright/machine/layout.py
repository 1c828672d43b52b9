"""What sits where on a compute die: routers, wires between them, and who sits on which router.

A layout is a pure function of the spec; every shape of network has its own file.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tilewright.machine.coords import Side
from tilewright.machine.node import NodeKind

Step = tuple[int, int]
"""The router that a packet goes to next, and the sublevel of its channel on the way."""


@dataclass(frozen=True, slots=True)
class RouterPlace:
    """A router by what its name needs, and its place on the die."""

    kind: NodeKind
    position_um: tuple[int, int]
    row: int | None = None
    column: int | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """Two routers that are joined both ways."""

    one: int
    other: int
    length_um: int


@dataclass(frozen=True, slots=True)
class DieLayout:
    """Routers are known by their position in ``routers``.

    ``path(one, other)`` is the turn rule: the steps of a packet between two routers. A network that
    needs a dateline uses sublevels 0 and 1 of every level, so ``num_sublevels`` is 2.
    """

    routers: tuple[RouterPlace, ...]
    wires: tuple[Wire, ...]
    pe_routers: tuple[int, ...]
    m_cpu_router: int
    sram_router: int
    port_routers: Mapping[Side, tuple[int, ...]]  # of each connection; empty without ports
    attach_um: int
    port_reach_um: int  # from a router to the edge of the die; for pictures only
    num_sublevels: int
    path: Callable[[int, int], tuple[Step, ...]]


def spread_evenly(index: int, *, num_items: int, num_seats: int) -> int:
    """The seat of an item: items keep their order, and no seat has two more than another.

    >>> [spread_evenly(index, num_items=4, num_seats=8) for index in range(4)]
    [1, 3, 5, 7]
    >>> [spread_evenly(index, num_items=4, num_seats=2) for index in range(4)]
    [0, 0, 1, 1]
    """
    return (2 * index + 1) * num_seats // (2 * num_items)


def nearest_router(
    routers: tuple[RouterPlace, ...], candidates: Iterable[int], position_um: tuple[int, int]
) -> int:
    """The candidate nearest to a position; of equal ones the last: higher row, then column."""

    def distance(index: int) -> tuple[int, int]:
        x, y = routers[index].position_um
        return (x - position_um[0]) ** 2 + (y - position_um[1]) ** 2, -index

    return min(candidates, key=distance)
