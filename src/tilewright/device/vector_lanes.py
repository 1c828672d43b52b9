"""The law of the vector unit: lanes of f32 that work in step."""

from dataclasses import dataclass
from typing import assert_never

from tilewright.device.cost_table import CostClass, cost_class_of
from tilewright.device.dtype import num_bytes_of
from tilewright.device.lookup import look_up
from tilewright.device.size import ceil_div, check_size
from tilewright.machine.spec import TcmSpec, VectorSpec
from tilewright.units import DTYPE_BITS

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
                return self._move_cycles(elements, dtype)
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

    def _move_cycles(self, elements: int, dtype: str) -> int:
        num_bytes = num_bytes_of(self.name, elements, dtype)
        bytes_per_s = min(self.tcm.read_bytes_per_us, self.tcm.write_bytes_per_us) * US_PER_S
        return ceil_div(num_bytes * self.spec.hz, bytes_per_s)
