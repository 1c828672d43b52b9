"""Layout of a die with one crossbar: everything sits on it, at the same distance."""

from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.layout import DieLayout, RouterPlace, Step
from tilewright.machine.node import NodeKind
from tilewright.machine.spec import CrossbarSpec, CubeSpec


def plan_crossbar_layout(cube: CubeSpec, noc: CrossbarSpec) -> DieLayout:
    num_connections = cube.ucie.connections if cube.ucie else 0
    sides = Side if cube.ucie else ()
    return DieLayout(
        routers=(RouterPlace(NodeKind.CROSSBAR, (noc.radius_um, noc.radius_um)),),
        wires=(),
        pe_routers=(0,) * cube.pes,
        m_cpu_router=0,
        sram_router=0,
        port_routers=MappingProxyType(dict.fromkeys(sides, (0,) * num_connections)),
        attach_um=noc.radius_um,
        port_reach_um=noc.radius_um,
        num_sublevels=1,
        path=_no_steps,
    )


def _no_steps(one: int, other: int) -> tuple[Step, ...]:
    del one, other  # there is one router
    return ()
