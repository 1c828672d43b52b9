"""The GEMM unit of a PE: a law in cycles, ours or a user's, as time on the unit's clock."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import accumulate, pairwise
from types import MappingProxyType

from tilewright.device.block import (
    GemmBlock,
    LoopGemmBlock,
    PeakGemmBlock,
    ceil_div,
    check_product,
    checked_cycles,
    construct_block,
    look_up,
)
from tilewright.errors import ServerError
from tilewright.machine.spec import DotArraySpec, GemmSpec, SystolicSpec
from tilewright.units import clock_edge_ps


class Pace(Enum):
    """How fast a GEMM unit multiplies a dtype, beside f16."""

    NARROW = "narrow"  # narrow_speed times the products a cycle
    PLAIN = "plain"
    WIDE = "wide"  # wide_slowdown times the cycles


GEMM_PACE: Mapping[str, Pace] = MappingProxyType(
    dict.fromkeys(("bf16", "f16"), Pace.PLAIN)
    | {"f32": Pace.WIDE}
    | dict.fromkeys(("f8e4m3", "f8e5m2", "i8", "u8"), Pace.NARROW)
)


class _Array(ABC):
    """What both shapes of a GEMM unit share: how a dtype changes their steps, and their peak."""

    __slots__ = ()

    name: str
    spec: DotArraySpec | SystolicSpec

    @abstractmethod
    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile of one accumulator; what the unit pays once is in the last."""

    def cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        """Cycles that the unit is held for one product, from the first operand to the result."""
        return sum(self.loop_cycles(m, n, (k,), dtype))

    def peak_flop_per_cycle(self, dtype: str) -> Fraction:
        """Operations of a cycle in which no cell idles; a multiply-add is two."""
        products, step_cycles = self._step(dtype)
        return Fraction(2 * self.spec.rows * self.spec.columns * products, step_cycles)

    def _step(self, dtype: str) -> tuple[int, int]:
        """Return the products of K that a cell makes in one step, and the cycles of a step."""
        match look_up(self.name, "dtype", dtype, GEMM_PACE):
            case Pace.NARROW:
                return self.spec.narrow_speed, 1
            case Pace.PLAIN:
                return 1, 1
            case Pace.WIDE:
                return 1, self.spec.wide_slowdown


@dataclass(frozen=True, slots=True)
class DotArray(_Array):
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

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile of one accumulator: the last result has to come out, once."""
        check_product(self.name, m, n, k_tiles)
        depth, step_cycles = self._step(dtype)
        outputs = ceil_div(m, self.spec.rows) * ceil_div(n, self.spec.columns)
        parts = [outputs * ceil_div(k, depth) * step_cycles for k in k_tiles]
        parts[-1] += self.spec.fill_cycles
        return tuple(parts)

    def _step(self, dtype: str) -> tuple[int, int]:
        """Return the depth and the cycles of one step."""
        products, step_cycles = _Array._step(self, dtype)
        return self.spec.depth * products, step_cycles


@dataclass(frozen=True, slots=True)
class SystolicArray(_Array):
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

    def last_cycle_index(self, m: int, n: int, k: int, dtype: str) -> int:
        """The cycle in which the last cell adds its last product, counted from 0."""
        return self.cycles(m, n, k, dtype) - 1

    def loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Cycles of each k tile of one accumulator: K flows on, each fold is skewed once."""
        check_product(self.name, m, n, k_tiles)
        rows, columns = self.spec.rows, self.spec.columns
        products, beat_cycles = self._step(dtype)
        beats = [ceil_div(k, products) for k in k_tiles]
        beats[-1] += rows + columns - 2
        folds = ceil_div(m, rows) * ceil_div(n, columns)
        return tuple(folds * part * beat_cycles for part in beats)


@dataclass(frozen=True, slots=True)
class GemmUnit:
    """Held for the cycles of its block's law; c cycles end at edge c of its clock.

    >>> unit = build_gemm("sip0.cube0.pe0.gemm", DotArraySpec())
    >>> unit.hold_ps(32, 32, 64, "f16")  # 2 x 2 x 4 steps and 16 cycles of fill at 1 GHz
    32000
    """

    name: str  # a path, "sip0.cube3.pe5.gemm"
    hz: int
    block: GemmBlock

    def hold_ps(self, m: int, n: int, k: int, dtype: str) -> int:
        """Time of one m x n x k product."""
        return clock_edge_ps(self._cycles(m, n, k, dtype), hz=self.hz)

    def loop_holds_ps(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        """Time of each k tile of one accumulator; their sum is the loop's, rounded up once.

        A block without ``loop_cycles`` pays its whole law for each tile: what it could save, only
        it can know.
        """
        check_product(self.name, m, n, k_tiles)
        if isinstance(self.block, LoopGemmBlock):
            call = f"loop_cycles({m}, {n}, {list(k_tiles)}, {dtype!r})"
            found = self.block.loop_cycles(m, n, k_tiles, dtype)
            if not isinstance(found, tuple) or len(found) != len(k_tiles):
                text, expected = f"{found!r} returned for {call}", f"a tuple of {len(k_tiles)} ints"
                raise ServerError(self.name, text, expected, "correct the block")
            parts = [checked_cycles(self.name, call, part) for part in found]
        else:
            parts = [self._cycles(m, n, k, dtype) for k in k_tiles]
        edges = [clock_edge_ps(cycles, hz=self.hz) for cycles in accumulate(parts, initial=0)]
        return tuple(after - before for before, after in pairwise(edges))

    def peak_flop_per_s(self, dtype: str) -> Fraction | None:
        """What no product can beat; None: the user's block does not say.

        >>> unit = build_gemm("sip0.cube0.pe0.gemm", DotArraySpec())
        >>> unit.peak_flop_per_s("bf16") == Fraction(8_192 * 10**9)
        True
        """
        if not isinstance(self.block, PeakGemmBlock):
            return None
        return self.block.peak_flop_per_cycle(dtype) * self.hz

    def _cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        check_product(self.name, m, n, (k,))
        call = f"cycles({m}, {n}, {k}, {dtype!r})"
        return checked_cycles(self.name, call, self.block.cycles(m, n, k, dtype))


def build_gemm(name: str, spec: GemmSpec) -> GemmUnit:
    """The unit that the spec asks for: by its kind, or with the user's block in it."""
    block: GemmBlock
    if spec.impl is not None:
        block = construct_block(name, spec, spec.impl)
    elif isinstance(spec, DotArraySpec):
        block = DotArray(name, spec)
    else:
        block = SystolicArray(name, spec)
    return GemmUnit(name, spec.hz, block)
