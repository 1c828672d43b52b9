"""A GEMM unit whose operands travel through a grid of cells: the named alternative."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.device.dtype import GEMM_PACE, Pace
from tilewright.device.lookup import look_up
from tilewright.device.size import ceil_div, check_product
from tilewright.machine.spec import SystolicSpec


@dataclass(frozen=True, slots=True)
class SystolicArray:
    """Output stationary: rows R, columns C, one result a cell, one fold of R x C results at a time.

    Operands enter at two edges, each row and column a beat later than the one before, and move
    one cell a beat. The last cell of a fold starts R + C - 2 beats after the first one, so

        cycles = ceil(M / R) ceil(N / C) (K + R + C - 2)

    This is the *number* of cycles. Tables that state the zero-based *index* of the last cycle have
    one less; that is ``last_cycle_index``. Results stay in place: a drain is not counted.

    A beat is one cycle and one product a cell for f16 and bf16. A narrow dtype makes
    ``narrow_speed`` products of K in a beat (rounded up in K), for a wide one (f32) every beat
    takes ``wide_slowdown`` cycles.
    """

    name: str
    spec: SystolicSpec

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        """Cycles that the unit is held for one product."""
        return sum(self.loop_cycles(m, n, (k,), dtype))

    def last_cycle_index(self, m: int, n: int, k: int, dtype: str) -> int:
        """The cycle in which the last cell adds its last product, counted from 0."""
        return self.cycles(m, n, k, dtype) - 1

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile of one accumulator: K flows on, each fold is skewed once."""
        check_product(self.name, m, n, k_tiles)
        rows, columns = self.spec.rows, self.spec.columns
        products, beat_cycles = self._beat(dtype)
        beats = [ceil_div(k, products) for k in k_tiles]
        beats[-1] += rows + columns - 2
        folds = ceil_div(m, rows) * ceil_div(n, columns)
        return tuple(folds * part * beat_cycles for part in beats)

    def peak_flop_per_cycle(self, dtype: str) -> Fraction:
        """Operations of a cycle in which no cell idles; a multiply-add is two."""
        products, beat_cycles = self._beat(dtype)
        return Fraction(2 * self.spec.rows * self.spec.columns * products, beat_cycles)

    def _beat(self, dtype: str) -> tuple[int, int]:
        """Products of a cell in one beat, and the cycles of a beat."""
        match look_up(self.name, "dtype", dtype, GEMM_PACE):
            case Pace.NARROW:
                return self.spec.narrow_speed, 1
            case Pace.PLAIN:
                return 1, 1
            case Pace.WIDE:
                return 1, self.spec.wide_slowdown
