"""Layout of a ring of routers, drawn as a square that starts in its north-west corner.

PEs are spread evenly over the routers, each on its own. A quarter of the ring belongs to each side
of the die, in the order north, east, south, west; a port's connections are spread over its quarter.
M_CPU and SRAM sit on the router nearest to their position.
"""

from functools import partial
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.layout import (
    DieLayout,
    RouterPlace,
    Wire,
    nearest_router,
    spread_evenly,
)
from tilewright.machine.node import NodeKind
from tilewright.machine.route_ring import ring_path
from tilewright.machine.spec import CubeSpec, RingSpec


def plan_ring_layout(cube: CubeSpec, noc: RingSpec) -> DieLayout:
    num = noc.routers
    routers = tuple(
        RouterPlace(NodeKind.RING_ROUTER, _position_um(index, noc), index=index)
        for index in range(num)
    )
    return DieLayout(
        routers=routers,
        wires=_wires(num, noc.pitch_um),
        pe_routers=tuple(
            spread_evenly(pe, num_items=cube.pes, num_seats=num) for pe in range(cube.pes)
        ),
        m_cpu_router=nearest_router(routers, range(num), cube.m_cpu_position_um),
        sram_router=nearest_router(routers, range(num), cube.sram_position_um),
        port_routers=_port_routers(num, cube),
        attach_um=cube.attach_um,
        port_reach_um=noc.pitch_um // 2,
        num_sublevels=2,
        path=partial(ring_path, num),
    )


def _wires(num: int, pitch_um: int) -> tuple[Wire, ...]:
    if num <= 2:  # two routers have one wire, which is both ways round
        return tuple(Wire(0, other, pitch_um) for other in range(1, num))
    return tuple(Wire(index, (index + 1) % num, pitch_um) for index in range(num))


def _port_routers(num: int, cube: CubeSpec) -> MappingProxyType[Side, tuple[int, ...]]:
    if cube.ucie is None:
        return MappingProxyType({})
    connections = cube.ucie.connections
    sides = (Side.NORTH, Side.EAST, Side.SOUTH, Side.WEST)
    routers = {
        side: tuple(
            spread_evenly(quarter * connections + index, num_items=4 * connections, num_seats=num)
            for index in range(connections)
        )
        for quarter, side in enumerate(sides)
    }
    return MappingProxyType(routers)


def _position_um(index: int, noc: RingSpec) -> tuple[int, int]:
    """In eighths of a micrometre a side is 2 n pitch long and a router (8 i + 4) pitch along."""
    side = 2 * noc.routers * noc.pitch_um
    corner, along = divmod((8 * index + 4) * noc.pitch_um, max(side, 1))
    x, y = ((along, 0), (side, along), (side - along, side), (0, side - along))[corner]
    return x // 8, y // 8
