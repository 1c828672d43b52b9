"""The vector unit of a PE: a law in cycles, ours or a user's, as time on the unit's clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import assert_never

from tilewright.device.block import (
    VectorBlock,
    ceil_div,
    check_size,
    checked_cycles,
    construct_block,
    look_up,
    num_bytes_of,
)
from tilewright.errors import RegistryError
from tilewright.machine.spec import TcmSpec, VectorSpec
from tilewright.units import DTYPE_BITS, clock_edge_ps


class CostClass(Enum):
    """What an op's time is made of."""

    SIMPLE = "simple"  # one pass over the elements, simple_cycles each time the lanes are full
    COMPLEX = "complex"  # the same with complex_cycles
    REDUCTION = "reduction"  # one pass, then a tree over the lanes
    SORT = "sort"  # the stages of a sorting network
    MOVE = "move"  # bytes through the ports of the TCM


_OPS: Mapping[CostClass, str] = {
    CostClass.SIMPLE: """
        abs add and arange cast ceil clamp eq floor fma full ge gt le lt maximum minimum mul ne neg
        not or select shl shr sub where xor
    """,
    CostClass.COMPLEX: "cos div erf exp exp2 floordiv log log2 mod rsqrt sin sqrt tanh",
    # a scan keeps what a reduction's tree computes on its way: same passes, same depth
    CostClass.REDUCTION: "all any argmax argmin cumprod cumsum max min prod scan sum xor_sum",
    CostClass.SORT: "argsort sort topk",
    # a reshape that moves no data is no command at all
    CostClass.MOVE: "cat flip gather interleave permute reshape split trans",
}


def build_cost_table(ops: Mapping[CostClass, str]) -> Mapping[str, CostClass]:
    """From classes with their ops to ops with their class; an op has one class."""
    table: dict[str, CostClass] = {}
    for cost, names in ops.items():
        for op in names.split():
            if op in table:
                found = f"op {op!r} in the classes {table[op].value} and {cost.value}"
                raise RegistryError("cost table", found, "one class an op", "take one of them out")
            table[op] = cost
    return MappingProxyType(table)


COST_TABLE: Mapping[str, CostClass] = build_cost_table(_OPS)


def cost_class_of(where: str, op: str) -> CostClass:
    """The class of ``op``; an unknown one is refused with the names that come near.

    >>> cost_class_of("sip0.cube0.pe0.vector", "rsqrt").value
    'complex'
    """
    return look_up(where, "op", op, COST_TABLE)


LANE_BITS = 32
US_PER_S = 10**6


@dataclass(frozen=True, slots=True)
class VectorLanes:
    """An element takes one lane, one of 64 bits two. Narrow ones gain nothing: they compute in f32.

    With n elements and w lanes an element, a *pass* over them is p = ceil(w n / lanes):

        simple and complex   p x simple_cycles, p x complex_cycles
        reduction, scan      (p + ceil(log2 lanes)) x simple_cycles: n are all elements of the block
        sort                 a bitonic network on n' = the next power of two, L = log2 n': in each
                             of its L (L + 1) / 2 stages n' / 2 compare-exchanges, one a lane, so
                             n' L (L + 1) / 4 of them; rounded up per stage, since a stage needs the
                             one before it; times simple_cycles. One element costs one pass
        move                 ceil(bytes / bytes a cycle of the slower TCM port): each byte is read
                             and written, at the same time
    """

    name: str
    spec: VectorSpec
    tcm: TcmSpec

    def cycles(self, op: str, elements: int, dtype: str) -> int:
        """Cycles that the unit is held for ``op`` on a block of so many elements."""
        check_size(self.name, "elements", elements)
        spec, cost = self.spec, cost_class_of(self.name, op)
        match cost:
            case CostClass.SIMPLE:
                return self._passes(elements, dtype) * spec.simple_cycles
            case CostClass.COMPLEX:
                return self._passes(elements, dtype) * spec.complex_cycles
            case CostClass.REDUCTION:
                tree_levels = (spec.lanes - 1).bit_length()
                return (self._passes(elements, dtype) + tree_levels) * spec.simple_cycles
            case CostClass.SORT:
                return self._sort_passes(elements, dtype) * spec.simple_cycles
            case CostClass.MOVE:
                port_rate = min(self.tcm.read_bytes_per_us, self.tcm.write_bytes_per_us)
                num_bytes = num_bytes_of(self.name, elements, dtype)
                return ceil_div(num_bytes * self.spec.hz, port_rate * US_PER_S)
            case _:
                assert_never(cost)

    def _passes(self, elements: int, dtype: str) -> int:
        bits = look_up(self.name, "dtype", dtype, DTYPE_BITS)
        return ceil_div(elements * max(1, bits // LANE_BITS), self.spec.lanes)

    def _sort_passes(self, elements: int, dtype: str) -> int:
        if elements == 1:
            return self._passes(elements, dtype)
        levels = (elements - 1).bit_length()
        num_stages = levels * (levels + 1) // 2
        return num_stages * self._passes(2**levels // 2, dtype)


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
