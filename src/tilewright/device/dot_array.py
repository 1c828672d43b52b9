"""A GEMM unit that makes a small block of dot products each cycle."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.device.dtype import GEMM_PACE, Pace
from tilewright.device.lookup import look_up
from tilewright.device.size import ceil_div, check_product
from tilewright.machine.spec import DotArraySpec


@dataclass(frozen=True, slots=True)
class DotArray:
    """Each step multiplies a rows x depth block by a depth x columns block into an accumulator.

    An M x N x K product takes

        cycles = ceil(M / rows) ceil(N / columns) ceil(K / depth) + fill

    f16 and bf16 so. A narrow dtype packs ``narrow_speed`` values where one f16 was, so its steps
    are that many times as deep and the rounding up happens in K. A wide one (f32) takes
    ``wide_slowdown`` cycles for each step. The fill is the pipeline's length, from the last
    operand in to the last result out, and does not depend on the dtype.
    """

    name: str
    spec: DotArraySpec

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        """Cycles that the unit is held for one product, from the first operand to the result."""
        return sum(self.loop_cycles(m, n, (k,), dtype))

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile of one accumulator: the last result has to come out, once."""
        check_product(self.name, m, n, k_tiles)
        depth, step_cycles = self._step(dtype)
        outputs = ceil_div(m, self.spec.rows) * ceil_div(n, self.spec.columns)
        parts = [outputs * ceil_div(k, depth) * step_cycles for k in k_tiles]
        parts[-1] += self.spec.fill_cycles
        return tuple(parts)

    def peak_flop_per_cycle(self, dtype: str) -> Fraction:
        """Operations of a cycle in which no cell idles; a multiply-add is two."""
        depth, step_cycles = self._step(dtype)
        return Fraction(2 * self.spec.rows * self.spec.columns * depth, step_cycles)

    def _step(self, dtype: str) -> tuple[int, int]:
        """Depth and cycles of one step."""
        match look_up(self.name, "dtype", dtype, GEMM_PACE):
            case Pace.NARROW:
                return self.spec.depth * self.spec.narrow_speed, 1
            case Pace.PLAIN:
                return self.spec.depth, 1
            case Pace.WIDE:
                return self.spec.depth, self.spec.wide_slowdown
