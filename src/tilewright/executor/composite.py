"""Composites: one command that walks over tiles, told to the scheduler as a whole."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tilewright.engine.core import NO_ROOM, NO_VALUE, NO_WALK
from tilewright.executor.dma import load, store
from tilewright.executor.program import Program
from tilewright.executor.run import Plan
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.composite import (
    CompositePlan,
    Scope,
    Stage,
    attributes_of,
    parts_of_operand,
    product_type,
)
from tilewright.language.front import Node
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import GemmCharge
from tilewright.language.pointer import Part, Ref
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
        what = f"{self.program} waits for {self.what} at {line_text(source_line())}"
        self.program.stream.wait(self.task, what)
        return self.block


def run_composite(program: Program, composite: CompositePlan) -> Pending:
    """Issue a composite; its end can be waited for."""
    program.hand_over_if_long()
    pipeline = _Pipeline(program, composite)
    program.issuer.open_composite()
    program.compose(True)
    program.last_walk = NO_WALK
    try:
        pipeline.run()
    finally:
        program.compose(False)
    task = program.issuer.close_composite()
    return Pending(program, task, pipeline.whole, str(composite))


@dataclass
class _Pipeline:
    """What is being told. Without an output all tiles lie in one value, the result."""

    program: Program
    composite: CompositePlan
    whole: Block | None = None
    _plans: dict[tuple[int, int, int], Plan] = field(default_factory=dict)  # of k tiles

    def run(self) -> None:
        """All commands, in the order in which the scheduler sees them."""
        composite, program = self.composite, self.program
        kernel_stages = [stage for stage in composite.stages if stage.scope is Scope.KERNEL]
        tile_of = self._product if composite.op == "gemm" else self._elementwise
        tiles = []
        for place in product(composite.tiling.rows, composite.tiling.columns):
            tile = tile_of(place)
            for stage in composite.stages:
                if stage.scope is Scope.OUTPUT_TILE:
                    self._apply(stage, tile, place)
            if composite.out is not None and not kernel_stages:
                # the accumulator is free for the next tile before this one has been stored
                tile = program.convert(tile, composite.out.dtype, False)
                self._store(tile, place)
                del tile
                continue
            if composite.out is not None and program.issuer.park(_number(tile)) == NO_ROOM:
                raise program.out_of_tcm(tile.type, tile.type.num_bytes)
            tiles.append((place, tile))
        if tiles:
            self._finish(tiles, kernel_stages)

    # -- how one tile of the result is computed --------------------------------------------------

    def _elementwise(self, place: tuple[Part, Part]) -> Block:
        """One op on what of its operands meets the tile."""
        op = self.composite.op
        parts = tuple(
            self._part(operand, parts_of_operand(operand.shape, place))
            for operand in self.composite.operands
        )
        return self._begin(self._plan(op, parts, attributes_of(op)), parts)

    def _product(self, place: tuple[Part, Part]) -> Block:
        """Products of k tiles, added up in an accumulator that stays in registers.

        Loads are told in the order of their use and run ahead as far as the TCM has room.
        """
        row, column = place
        first, second = self.composite.operands
        k_stages = [stage for stage in self.composite.stages if stage.scope is Scope.K_TILE]
        apart, total = bool(k_stages), None
        for number, depth in enumerate(self.composite.tiling.depths):
            left = self._part(first, (row, depth))  # which lets go of the one before
            right = self._part(second, (depth, column))
            plan = self._k_tile_plan(left.type, right.type, number, apart)
            if total is None:
                product = total = self._begin(plan, (left, right))
            elif apart:
                product = self._fresh(plan, (left, right))
            else:
                self._update(plan, total, (left, right), last=True)
                continue
            for stage in k_stages:
                self._apply(stage, product, place, number)
            if product is not total:
                add = self._plan("add", (total, product), ())
                self._update(add, total, (product,), last=False)
        return total  # type: ignore[return-value]  # k has a tile at least

    def _k_tile_plan(self, left: BlockType, right: BlockType, number: int, apart: bool) -> Plan:
        """Of one k tile; those that are not apart fill the unit once for all of them."""
        key = (left.shape[0], right.shape[1], number)
        if key in self._plans:
            return self._plans[key]
        run, pe, acc_dtype = self.program.run, self.program.stream.pe, self.composite.acc_dtype
        kind = product_type(left, right, acc_dtype)
        adds_up = bool(number and not apart)
        operands = (left, right, kind) if adds_up else (left, right)
        bound = MEANINGS["dot"].bind(operands, (None, None, acc_dtype))
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
        known = ("composite gemm", (left, right), (vector_ps, gemm_ps, adds_up, acc_dtype))
        if known not in run.plans:
            run.plans[known] = run.add_plan(Plan((kind,), bound.run, vector_ps, gemm_ps))
        self._plans[key] = run.plans[known]
        return run.plans[known]

    # -- values that commands update -------------------------------------------------------------

    def _begin(self, plan: Plan, operands: tuple[Block, ...]) -> Block:
        """The first command of a tile of the result."""
        if self.composite.out is not None:
            return self._fresh(plan, operands)
        kind = plan.types[0]
        if self.whole is None:
            plan = self._spread(plan)
            number = self._issue(plan, NO_VALUE, operands)
            self.whole = Block(self.program, self.composite.result, None, number)
        else:
            self._issue(plan, _number(self.whole), operands)
        return Block(self.program, kind, _node(plan, operands), self.whole.number, self.whole)

    def _fresh(self, plan: Plan, operands: tuple[Block, ...]) -> Block:
        """A value of its own."""
        number = self._issue(plan, NO_VALUE, operands)
        return Block(self.program, plan.types[0], _node(plan, operands), number)

    def _update(
        self, plan: Plan, target: Block, operands: tuple[Block, ...], *, last: bool
    ) -> None:
        """The result takes the place of ``target``, which the op has first or last."""
        self._issue(plan, _number(target), operands)
        target.node = _node(plan, (*operands, target) if last else (target, *operands))

    def _apply(self, stage: Stage, target: Block, place: tuple[Part, ...], k_tile: int = 0) -> None:
        """A stage of the epilogue on a tile."""
        operands = self._part_of_stage(stage, place, k_tile)
        plan = self._plan(stage.op, (target, *operands), stage.attributes)
        self._update(plan, target, operands, last=False)

    def _plan(self, op: str, blocks: tuple[Block, ...], attributes: tuple[Any, ...]) -> Plan:
        return self.program.plan(op, tuple(block.type for block in blocks), attributes)

    def _spread(self, plan: Plan) -> Plan:
        """The same, with room for the whole result."""
        key = ("composite", (self.composite.result, *plan.types), (plan.vector_ps, plan.gemm_ps))
        plans = self.program.run.plans
        if key not in plans:
            wide = Plan((self.composite.result,), plan.run, plan.vector_ps, plan.gemm_ps)
            plans[key] = self.program.run.add_plan(wide)
        return plans[key]

    def _issue(self, plan: Plan, number: int, operands: tuple[Block, ...]) -> int:
        # `held`, since factors of a product are not placed
        sizes = [(each.held, each.type.num_bytes) for each in operands]
        needed = [(held, num_bytes) for held, num_bytes in sizes if held is not None]
        made = self.program.issuer.update(plan.number, number, needed)
        if made == NO_ROOM:
            kind = plan.types[0]
            found = f"a result {kind} of {kind.num_bytes} bytes beside what registers hold"
            expected = f"room in registers of {self.program.stream.pe.issuer.near_bytes} bytes"
            fix = "make the tiles of the result smaller, or let go of blocks before"
            raise self.program.room_error(found, expected, fix)
        return made

    def _finish(self, tiles: list[tuple[Any, Block]], stages: list[Stage]) -> None:
        """What waits for all tiles: stages of the kernel, then the stores or the result."""
        node = self._assembled(tiles)
        everywhere = tuple(Part(0, extent) for extent in self.composite.result.shape)
        if self.composite.out is None and self.whole is not None:
            self.whole.node = node
            for stage in stages:
                self._apply(stage, self.whole, everywhere)
            return
        whole = Block(self.program, self.composite.result, node, None)
        numbers = [_number(tile) for _, tile in tiles]
        for stage in stages:
            whole = self._whole_stage(stage, whole, everywhere, numbers)
            numbers = [_number(whole)]
        for place, _ in tiles:
            self._store(self._part(whole, place), place)

    def _whole_stage(
        self, stage: Stage, whole: Block, everywhere: tuple[Part, ...], numbers: list[int]
    ) -> Block:
        program = self.program
        operands = self._part_of_stage(stage, everywhere)
        plan = self._plan(stage.op, (whole, *operands), stage.attributes)
        numbers = numbers + [block.number for block in operands if block.number is not None]
        number = program.issuer.compute(plan.number, numbers)
        if number == NO_ROOM:
            raise program.out_of_tcm(self.composite.result, self.composite.result.num_bytes)
        return Block(program, self.composite.result, _node(plan, (whole, *operands)), number)

    def _assembled(self, tiles: list[tuple[Any, Block]]) -> Node | None:
        nodes = [tile.node for _, tile in tiles if tile.node is not None]
        if len(nodes) < len(tiles):
            return None
        places = [tuple(part.slice for part in place) for place, _ in tiles]
        kind = self.composite.result

        def assemble(*values: Any) -> Any:
            whole = np.empty(kind.shape, kind.dtype.storage)
            for place, value in zip(places, values, strict=True):
                whole[place] = value
            return whole

        return Node(assemble, nodes, source_line())

    def _store(self, tile: Block, place: tuple[Part, ...]) -> None:
        if self.composite.out is not None:
            store(self.program, self.composite.out.pointers(place), tile, None)

    # -- parts of operands -----------------------------------------------------------------------

    def _part(self, operand: Ref | Block, parts: tuple[Part, ...]) -> Block:
        """A part of an operand: loaded now, or a view of the block."""
        if isinstance(operand, Ref):
            return load(self.program, operand.pointers(parts), None, None)
        shape = tuple(part.size for part in parts)
        if shape == operand.shape:
            return operand
        node = None
        if operand.node is not None:
            place = tuple(part.slice for part in parts)
            node = Node(lambda whole: whole[place], (operand.node,), operand.node.line)
        parent = operand if operand.parent is None else operand.parent
        return Block(self.program, block_type(operand.dtype, shape), node, operand.held, parent)

    def _part_of_stage(
        self, stage: Stage, place: tuple[Part, ...], k_tile: int = 0
    ) -> tuple[Block, ...]:
        """What of a stage's operand meets a place of the result."""
        if stage.operand is None:
            return ()
        shape = stage.operand.shape
        if len(shape) <= len(place):
            return (self._part(stage.operand, parts_of_operand(shape, place)),)
        place = (Part(k_tile, 1), *place)  # one for each k tile
        part = self._part(stage.operand, parts_of_operand(shape, place))
        return (self.program.compute("reshape", (part,), (part.shape[1:],)),)


def _number(block: Block) -> int:
    return NO_VALUE if block.number is None else block.number


def _node(plan: Plan, inputs: tuple[Block, ...]) -> Node | None:
    nodes = [block.node for block in inputs if block.node is not None]
    return Node(plan.run, nodes, source_line()) if len(nodes) == len(inputs) else None
