"""The GEMM unit of a PE: a law in cycles, ours or a user's, as time on the unit's clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from tilewright.device.block import (
    GemmBlock,
    LoopGemmBlock,
    PeakGemmBlock,
    checked_cycles,
    construct_block,
)
from tilewright.device.dot_array import DotArray
from tilewright.device.size import check_product
from tilewright.device.systolic import SystolicArray
from tilewright.errors import ServerError
from tilewright.machine.spec import DotArraySpec, GemmSpec, SystolicSpec
from tilewright.units import clock_edge_ps


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
        parts = self._loop_cycles(m, n, k_tiles, dtype)
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

    def utilisation(self, m: int, n: int, k: int, dtype: str) -> Fraction | None:
        """Share of the peak that a product reaches; None: the user's block does not say."""
        if not isinstance(self.block, PeakGemmBlock):
            return None
        cycles = self._cycles(m, n, k, dtype)
        return Fraction(2 * m * n * k) / (self.block.peak_flop_per_cycle(dtype) * cycles)

    def _cycles(self, m: int, n: int, k: int, dtype: str) -> int:
        check_product(self.name, m, n, (k,))
        call = f"cycles({m}, {n}, {k}, {dtype!r})"
        return checked_cycles(self.name, call, self.block.cycles(m, n, k, dtype))

    def _loop_cycles(self, m: int, n: int, k_tiles: Sequence[int], dtype: str) -> tuple[int, ...]:
        check_product(self.name, m, n, k_tiles)
        if not isinstance(self.block, LoopGemmBlock):
            return tuple(self._cycles(m, n, k, dtype) for k in k_tiles)
        call = f"loop_cycles({m}, {n}, {list(k_tiles)}, {dtype!r})"
        parts = self.block.loop_cycles(m, n, k_tiles, dtype)
        if not isinstance(parts, tuple) or len(parts) != len(k_tiles):
            found, expected = f"{parts!r} returned for {call}", f"a tuple of {len(k_tiles)} ints"
            raise ServerError(self.name, found, expected, "correct the block")
        return tuple(checked_cycles(self.name, call, part) for part in parts)


def build_gemm(name: str, spec: GemmSpec) -> GemmUnit:
    """The unit that the spec asks for: by its kind, or with the user's block in it."""
    return GemmUnit(name, spec.hz, _build_block(name, spec))


def _build_block(name: str, spec: GemmSpec) -> GemmBlock:
    if spec.impl is not None:
        block: GemmBlock = construct_block(name, spec, spec.impl)
        return block
    match spec:
        case DotArraySpec():
            return DotArray(name, spec)
        case SystolicSpec():
            return SystolicArray(name, spec)
