"""What sits where on a compute die: routers, wires between them, and who sits on which router.

A layout is a pure function of the spec. That of a mesh is in ``mesh``. On a die with one crossbar
everything sits on it, at the same distance.

**Ring.** It is drawn as a square that starts in its north-west corner. PEs are spread evenly over
the routers, each on its own. A quarter of the ring belongs to each side of the die, in the order
north, east, south, west; a port's connections are spread over its quarter. M_CPU and SRAM sit on
the router nearest to their position. A packet takes the shorter way round; one that passes from the
last router to the first, or back, uses sublevel 1 on that wire and behind it. No packet passes this
dateline twice, so neither sublevel closes a circle.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.node import NodeKind, NodeName
from tilewright.machine.spec import CrossbarSpec, CubeSpec, RingSpec

Step = tuple[int, int]
"""The router that a packet goes to next, and the sublevel of its channel on the way."""


@dataclass(frozen=True, slots=True)
class RouterPlace:
    """A router by its name in the first cube, and its place on the die."""

    name: NodeName
    position_um: tuple[int, int]


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


def spread_over(seats: Sequence[int], num_items: int) -> tuple[int, ...]:
    """Return the seat of each item: items keep their order, no seat has two more than another.

    >>> spread_over(range(8), 4), spread_over(range(2), 4)
    ((1, 3, 5, 7), (0, 0, 1, 1))
    """
    return tuple(seats[(2 * item + 1) * len(seats) // (2 * num_items)] for item in range(num_items))


def nearest_router(
    routers: tuple[RouterPlace, ...], candidates: Iterable[int], position_um: tuple[int, int]
) -> int:
    """The candidate nearest to a position; of equal ones the last: higher row, then column."""

    def distance(index: int) -> tuple[int, int]:
        x, y = routers[index].position_um
        return (x - position_um[0]) ** 2 + (y - position_um[1]) ** 2, -index

    return min(candidates, key=distance)


def ring_path(num_routers: int, one: int, other: int) -> tuple[Step, ...]:
    """Routers from ``one`` (left out) to ``other``; of two equal ways the one that counts up.

    >>> ring_path(8, 6, 1)
    ((7, 0), (0, 1), (1, 1))
    """
    ahead = (other - one) % num_routers
    forward = 2 * ahead <= num_routers
    num_steps, step = (ahead, 1) if forward else (num_routers - ahead, -1)
    steps = []
    sublevel = 0
    at = one
    for _ in range(num_steps):
        following = (at + step) % num_routers
        if abs(following - at) != 1:
            sublevel = 1
        steps.append((following, sublevel))
        at = following
    return tuple(steps)


def plan_ring_layout(cube: CubeSpec, noc: RingSpec) -> DieLayout:
    num = noc.routers
    routers = tuple(
        RouterPlace(
            NodeName(NodeKind.RING_ROUTER, sip=0, cube=0, index=index), _position_um(index, noc)
        )
        for index in range(num)
    )
    joined = num if num > 2 else num - 1  # two routers have one wire, which is both ways round
    sides = (Side.NORTH, Side.EAST, Side.SOUTH, Side.WEST) if cube.ucie else ()
    connections = cube.ucie.connections if cube.ucie else 0
    on_ports = spread_over(range(num), 4 * connections)
    return DieLayout(
        routers=routers,
        wires=tuple(Wire(index, (index + 1) % num, noc.pitch_um) for index in range(joined)),
        pe_routers=spread_over(range(num), cube.pes),
        m_cpu_router=nearest_router(routers, range(num), cube.m_cpu_position_um),
        sram_router=nearest_router(routers, range(num), cube.sram_position_um),
        port_routers=MappingProxyType(
            {
                side: on_ports[quarter * connections : (quarter + 1) * connections]
                for quarter, side in enumerate(sides)
            }
        ),
        attach_um=cube.attach_um,
        port_reach_um=noc.pitch_um // 2,
        num_sublevels=2,
        path=partial(ring_path, num),
    )


def _position_um(index: int, noc: RingSpec) -> tuple[int, int]:
    """In eighths of a micrometre a side is 2 n pitch long and a router (8 i + 4) pitch along."""
    side = 2 * noc.routers * noc.pitch_um
    corner, along = divmod((8 * index + 4) * noc.pitch_um, max(side, 1))
    x, y = ((along, 0), (side, along), (side - along, side), (0, side - along))[corner]
    return x // 8, y // 8


def plan_crossbar_layout(cube: CubeSpec, noc: CrossbarSpec) -> DieLayout:
    num_connections = cube.ucie.connections if cube.ucie else 0
    sides = Side if cube.ucie else ()
    name = NodeName(NodeKind.CROSSBAR, sip=0, cube=0)
    return DieLayout(
        routers=(RouterPlace(name, (noc.radius_um, noc.radius_um)),),
        wires=(),
        pe_routers=(0,) * cube.pes,
        m_cpu_router=0,
        sram_router=0,
        port_routers=MappingProxyType(dict.fromkeys(sides, (0,) * num_connections)),
        attach_um=noc.radius_um,
        port_reach_um=noc.radius_um,
        num_sublevels=1,
        path=partial(ring_path, 1),  # there is one router
    )
