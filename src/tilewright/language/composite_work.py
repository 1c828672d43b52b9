"""How one tile of a composite's result is computed: by the GEMM unit, or by the vector unit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.composite import Composite
from tilewright.language.composite_epilogue import Scope, Stage, attributes_of
from tilewright.language.composite_operand import Ref, part_of
from tilewright.language.dtype import DType
from tilewright.language.meaning.bound import GemmCharge
from tilewright.language.meaning.table import MEANINGS
from tilewright.language.program import Program
from tilewright.language.run import Plan
from tilewright.language.tiling import Part, Tiling, parts_of_operand
from tilewright.language.value import Block

__all__ = ("GemmWork", "VectorWork", "product_type")


def product_type(left: BlockType, right: BlockType, acc_dtype: DType) -> BlockType:
    """Of a sum of products; what cannot be multiplied is refused."""
    bound = MEANINGS["dot"].bind((left, right), (None, None, acc_dtype))
    kind: Any = bound.type  # a dot has one result
    return block_type(kind.dtype, kind.shape)


@dataclass
class GemmWork:
    """Products of k tiles, added up in an accumulator that stays in registers.

    Loads are told in the order of their use and run ahead as far as the TCM has room.
    """

    program: Program
    left: Ref | Block
    right: Ref | Block
    acc_dtype: DType
    tiling: Tiling
    stages: Sequence[Stage]
    _plans: dict[tuple[int, int, int], Plan] = field(default_factory=dict)

    def tile(self, composite: Composite, place: tuple[Part, Part]) -> Block:
        row, column = place
        k_stages = [stage for stage in self.stages if stage.scope is Scope.K_TILE]
        total: Block | None = None
        for number, depth in enumerate(self.tiling.depths):
            left = part_of(self.program, self.left, (row, depth))
            right = part_of(self.program, self.right, (depth, column))
            if total is None:
                plan = self._plan(left.type, right.type, number, apart=bool(k_stages))
                total = composite.begin(plan, (left, right))
                self._scale(composite, k_stages, total, place, number)
            elif not k_stages:
                plan = self._plan(left.type, right.type, number, apart=False)
                composite.update(plan, total, (left, right), last=True)
            else:
                plan = self._plan(left.type, right.type, number, apart=True)
                product = composite.fresh(plan, (left, right))
                self._scale(composite, k_stages, product, place, number)
                add = composite.plan("add", (total, product), ())
                composite.update(add, total, (product,), last=False)
        return total  # type: ignore[return-value]  # k has a tile at least

    def _scale(
        self, composite: Composite, stages: list[Stage], product: Block, place: Any, number: int
    ) -> None:
        for stage in stages:
            composite.apply(stage, product, place, number)

    def _plan(self, left: BlockType, right: BlockType, number: int, *, apart: bool) -> Plan:
        """Of one k tile; those that are not apart fill the unit once for all of them."""
        key = (left.shape[0], right.shape[1], number)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._known_plan(left, right, number, apart)
        return plan

    def _known_plan(self, left: BlockType, right: BlockType, number: int, apart: bool) -> Plan:
        run, pe = self.program.run, self.program.stream.pe
        kind = product_type(left, right, self.acc_dtype)
        operands = (left, right, kind) if number and not apart else (left, right)
        bound = MEANINGS["dot"].bind(operands, (None, None, self.acc_dtype))
        (charge,) = bound.charges
        vector_ps = gemm_ps = 0
        dtype = charge.dtype.device_name
        if not isinstance(charge, GemmCharge):
            vector_ps = charge.times * pe.vector.hold_ps(charge.op, charge.elements, dtype)
        elif apart:
            gemm_ps = pe.gemm.hold_ps(charge.m, charge.n, charge.k, dtype)
        else:
            sizes = [depth.size for depth in self.tiling.depths]
            gemm_ps = pe.gemm.loop_holds_ps(charge.m, charge.n, sizes, dtype)[number]
        place = (vector_ps, gemm_ps, bool(number and not apart), self.acc_dtype)
        known = ("composite gemm", (left, right), place)
        if known not in run.plans:
            plan = Plan((kind,), bound.run, vector_ps, gemm_ps)
            run.plans[known] = run.add_plan(plan)
        return run.plans[known]


@dataclass
class VectorWork:
    """One op on what of its operands meets the tile."""

    program: Program
    op: str
    operands: tuple[Ref | Block, ...]

    def tile(self, composite: Composite, place: tuple[Part, Part]) -> Block:
        parts = tuple(
            part_of(self.program, operand, parts_of_operand(operand.shape, place))
            for operand in self.operands
        )
        return composite.begin(composite.plan(self.op, parts, attributes_of(self.op)), parts)
