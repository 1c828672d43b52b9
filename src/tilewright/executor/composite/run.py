"""Composites: one command that walks over tiles, told to the scheduler as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.engine.core import NO_WALK
from tilewright.executor.composite.pipeline import Pipeline, TileWork, part_of
from tilewright.executor.program import Program
from tilewright.executor.run import Plan
from tilewright.language.block_type import BlockType
from tilewright.language.composite import (
    CompositePlan,
    Scope,
    Stage,
    attributes_of,
    parts_of_operand,
    product_type,
)
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import GemmCharge
from tilewright.language.pointer import Part
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Block


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that was begun and goes on; ``block`` is what it gives, if that is a value."""

    program: Program
    task: int
    block: Block | None
    what: str

    def wait(self) -> Block | None:
        """Suspend the program until it has ended."""
        program = self.program
        line = line_text(source_line())
        program.stream.wait(self.task, f"{program} waits for {self.what} at {line}")
        return self.block


def run_composite(program: Program, composite: CompositePlan) -> Pending:
    """Issue a composite; its end can be waited for."""
    program.hand_over_if_long()
    work: TileWork = (_GemmWork if composite.op == "gemm" else _VectorWork)(program, composite)
    pipeline = Pipeline(program, composite)
    with _parts_of_one(program):
        pipeline.run(work)
    task = program.issuer.close_composite()
    return Pending(program, task, pipeline.whole, str(composite))


@contextmanager
def _parts_of_one(program: Program) -> Iterator[None]:
    program.issuer.open_composite()
    program.compose(True)
    program.last_walk = NO_WALK
    try:
        yield
    finally:
        program.compose(False)


# -- how one tile of the result is computed ------------------------------------------------------


@dataclass
class _GemmWork:
    """Products of k tiles, added up in an accumulator that stays in registers.

    Loads are told in the order of their use and run ahead as far as the TCM has room.
    """

    program: Program
    composite: CompositePlan
    _plans: dict[tuple[int, int, int], Plan] = field(default_factory=dict)

    def tile(self, pipeline: Pipeline, place: tuple[Part, Part]) -> Block:
        row, column = place
        first, second = self.composite.operands
        k_stages = [stage for stage in self.composite.stages if stage.scope is Scope.K_TILE]
        total: Block | None = None
        for number, depth in enumerate(self.composite.tiling.depths):
            left = part_of(self.program, first, (row, depth))
            right = part_of(self.program, second, (depth, column))
            if total is None:
                plan = self._plan(left.type, right.type, number, apart=bool(k_stages))
                total = pipeline.begin(plan, (left, right))
                self._scale(pipeline, k_stages, total, place, number)
            elif not k_stages:
                plan = self._plan(left.type, right.type, number, apart=False)
                pipeline.update(plan, total, (left, right), last=True)
            else:
                plan = self._plan(left.type, right.type, number, apart=True)
                product = pipeline.fresh(plan, (left, right))
                self._scale(pipeline, k_stages, product, place, number)
                add = pipeline.plan("add", (total, product), ())
                pipeline.update(add, total, (product,), last=False)
        return total  # type: ignore[return-value]  # k has a tile at least

    def _scale(
        self, pipeline: Pipeline, stages: list[Stage], product: Block, place: Any, number: int
    ) -> None:
        for stage in stages:
            pipeline.apply(stage, product, place, number)

    def _plan(self, left: BlockType, right: BlockType, number: int, *, apart: bool) -> Plan:
        """Of one k tile; those that are not apart fill the unit once for all of them."""
        key = (left.shape[0], right.shape[1], number)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._known_plan(left, right, number, apart)
        return plan

    def _known_plan(self, left: BlockType, right: BlockType, number: int, apart: bool) -> Plan:
        run, pe = self.program.run, self.program.stream.pe
        kind = product_type(left, right, self.composite.acc_dtype)
        operands = (left, right, kind) if number and not apart else (left, right)
        bound = MEANINGS["dot"].bind(operands, (None, None, self.composite.acc_dtype))
        (charge,) = bound.charges
        vector_ps = gemm_ps = 0
        dtype = charge.dtype.device_name
        if not isinstance(charge, GemmCharge):
            vector_ps = charge.times * pe.vector.hold_ps(charge.op, charge.elements, dtype)
        elif apart:
            gemm_ps = pe.gemm.hold_ps(charge.m, charge.n, charge.k, dtype)
        else:
            sizes = [depth.size for depth in self.composite.tiling.depths]
            gemm_ps = pe.gemm.loop_holds_ps(charge.m, charge.n, sizes, dtype)[number]
        place = (vector_ps, gemm_ps, bool(number and not apart), self.composite.acc_dtype)
        known = ("composite gemm", (left, right), place)
        if known not in run.plans:
            plan = Plan((kind,), bound.run, vector_ps, gemm_ps)
            run.plans[known] = run.add_plan(plan)
        return run.plans[known]


@dataclass
class _VectorWork:
    """One op on what of its operands meets the tile."""

    program: Program
    composite: CompositePlan

    def tile(self, pipeline: Pipeline, place: tuple[Part, Part]) -> Block:
        parts = tuple(
            part_of(self.program, operand, parts_of_operand(operand.shape, place))
            for operand in self.composite.operands
        )
        return pipeline.begin(
            pipeline.plan(self.composite.op, parts, attributes_of(self.composite.op)), parts
        )
