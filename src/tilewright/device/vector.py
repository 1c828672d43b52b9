"""The vector unit of a PE: a law in cycles, ours or a user's, as time on the unit's clock."""

from dataclasses import dataclass

from tilewright.device.block import VectorBlock, checked_cycles, construct_block
from tilewright.device.size import check_size
from tilewright.device.vector_lanes import VectorLanes
from tilewright.machine.spec import TcmSpec, VectorSpec
from tilewright.units import clock_edge_ps


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """Held for the cycles of its block's law; c cycles end at edge c of its clock.

    >>> unit = build_vector("sip0.cube0.pe0.vector", VectorSpec(), TcmSpec())
    >>> unit.hold_ps("exp", 1024, "f16")  # two passes over 512 lanes, 4 cycles each, at 1 GHz
    8000
    """

    name: str  # a path, "sip0.cube3.pe5.vector"
    hz: int
    block: VectorBlock

    def hold_ps(self, op: str, elements: int, dtype: str) -> int:
        """Time of ``op`` on a block of so many elements."""
        check_size(self.name, "elements", elements)
        found = self.block.cycles(op, elements, dtype)
        cycles = checked_cycles(self.name, f"cycles({op!r}, {elements}, {dtype!r})", found)
        return clock_edge_ps(cycles, hz=self.hz)


def build_vector(name: str, spec: VectorSpec, tcm: TcmSpec) -> VectorUnit:
    """The unit that the spec asks for: our lanes beside that TCM, or the user's block."""
    if spec.impl is not None:
        return VectorUnit(name, spec.hz, construct_block(name, spec, spec.impl))
    return VectorUnit(name, spec.hz, VectorLanes(name, spec, tcm))
