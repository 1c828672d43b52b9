"""The walk of a composite over its tiles: all its commands, in the order of the scheduler."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilewright.engine.core import NO_ROOM, NO_VALUE
from tilewright.errors import KernelError
from tilewright.executor.dma import load, store
from tilewright.executor.program import Program
from tilewright.executor.run import Plan
from tilewright.language.block_type import block_type
from tilewright.language.composite import CompositePlan, Scope, Stage, parts_of_operand
from tilewright.language.front import Node
from tilewright.language.pointer import Part, Ref
from tilewright.language.source import source_line
from tilewright.language.value import Block


class TileWork(Protocol):
    """How one tile of the result is computed; a GEMM and an op of the vector unit differ here."""

    def tile(self, pipeline: "Pipeline", place: tuple[Part, Part]) -> Block:
        """Issue all commands of a tile."""
        ...


@dataclass
class Pipeline:
    """What is being told. Without an output all tiles lie in one value, the result."""

    program: Program
    composite: CompositePlan
    whole: Block | None = field(default=None, init=False)

    # -- values that commands update -------------------------------------------------------------

    def begin(self, plan: Plan, operands: tuple[Block, ...]) -> Block:
        """The first command of a tile of the result."""
        if self.composite.out is not None:
            return self.fresh(plan, operands)
        kind = plan.types[0]
        if self.whole is None:
            plan = self._spread(plan)
            number = self._issue(plan, NO_VALUE, operands)
            self.whole = Block(self.program, self.composite.result, None, number)
        else:
            self._issue(plan, self._number(self.whole), operands)
        node = self._node(plan, operands)
        return Block(self.program, kind, node, self.whole.number, self.whole)

    def fresh(self, plan: Plan, operands: tuple[Block, ...]) -> Block:
        """A value of its own."""
        number = self._issue(plan, NO_VALUE, operands)
        return Block(self.program, plan.types[0], self._node(plan, operands), number)

    def update(self, plan: Plan, target: Block, operands: tuple[Block, ...], *, last: bool) -> None:
        """The result takes the place of ``target``, which the op has first or last."""
        self._issue(plan, self._number(target), operands)
        inputs = (*operands, target) if last else (target, *operands)
        target.node = self._node(plan, inputs)

    def apply(self, stage: Stage, target: Block, place: tuple[Part, ...], k_tile: int = 0) -> None:
        """A stage of the epilogue on a tile."""
        operands = _part_of_stage(stage, self.program, place, k_tile)
        plan = self.plan(stage.op, (target, *operands), stage.attributes)
        self.update(plan, target, operands, last=False)

    def plan(self, op: str, blocks: tuple[Block, ...], attributes: tuple[Any, ...]) -> Plan:
        program = self.program
        key = (op, tuple(block.type for block in blocks), attributes)
        plan = program.run.plans.get(key)
        if plan is None:
            plan = program.run.plans[key] = program.run.plan(program.stream.pe, *key)
        return plan

    def _spread(self, plan: Plan) -> Plan:
        """The same, with room for the whole result."""
        key = ("composite", (self.composite.result, *plan.types), (plan.vector_ps, plan.gemm_ps))
        plans = self.program.run.plans
        if key not in plans:
            wide = Plan((self.composite.result,), plan.run, plan.vector_ps, plan.gemm_ps)
            plans[key] = self.program.run.add_plan(wide)
        return plans[key]

    def _issue(self, plan: Plan, number: int, operands: tuple[Block, ...]) -> int:
        needed = [
            (operand.held, operand.type.num_bytes)  # only factors of a product are not placed
            for operand in operands
            if operand.held is not None
        ]
        made = self.program.issuer.update(plan.number, number, needed)
        if made == NO_ROOM:
            raise self._out_of_registers(plan)
        return made

    def _out_of_registers(self, plan: Plan) -> KernelError:
        kind = plan.types[0]
        capacity_bytes = self.program.stream.pe.issuer.near_bytes
        found = f"a result {kind} of {kind.num_bytes} bytes beside what registers hold"
        fix = "make the tiles of the result smaller, or let go of blocks before"
        return self.program.room_error(found, f"room in registers of {capacity_bytes} bytes", fix)

    def _number(self, block: Block) -> int:
        return NO_VALUE if block.number is None else block.number

    def _node(self, plan: Plan, inputs: tuple[Block, ...]) -> Node | None:
        nodes = [block.node for block in inputs if block.node is not None]
        if len(nodes) < len(inputs):
            return None
        return Node(plan.run, nodes, source_line())

    # -- the walk --------------------------------------------------------------------------------

    def run(self, work: TileWork) -> None:
        """All commands, in the order in which the scheduler sees them."""
        kernel_stages = [stage for stage in self.composite.stages if stage.scope is Scope.KERNEL]
        tiles = []
        for place in self.composite.tiling.outputs():
            tile = work.tile(self, place)
            for stage in self.composite.stages:
                if stage.scope is Scope.OUTPUT_TILE:
                    self.apply(stage, tile, place)
            if self.composite.out is not None and not kernel_stages:
                # the accumulator is free for the next tile before this one has been stored
                tile = self.program.convert(tile, self.composite.out.dtype, False)
                self._store(tile, place)
                del tile
                continue
            if self.composite.out is not None:
                self._park(tile)
            tiles.append((place, tile))
        if tiles:
            self._finish(tiles, kernel_stages)

    def _finish(self, tiles: list[tuple[Any, Block]], stages: list[Stage]) -> None:
        """What waits for all tiles: stages of the kernel, and then the stores or the result."""
        node = self._assembled(tiles)
        if self.composite.out is None and self.whole is not None:
            self.whole.node = node
            for stage in stages:
                self.apply(stage, self.whole, self._everywhere())
            return
        whole = Block(self.program, self.composite.result, node, None)
        numbers = [self._number(tile) for _, tile in tiles]
        for stage in stages:
            whole = self._whole_stage(stage, whole, numbers)
            numbers = [self._number(whole)]
        for place, _ in tiles:
            self._store(part_of(self.program, whole, place), place)

    def _whole_stage(self, stage: Stage, whole: Block, numbers: list[int]) -> Block:
        program = self.program
        operands = _part_of_stage(stage, program, self._everywhere())
        plan = self.plan(stage.op, (whole, *operands), stage.attributes)
        numbers = numbers + [block.number for block in operands if block.number is not None]
        number = program.issuer.compute(plan.number, numbers)
        if number == NO_ROOM:
            raise program.out_of_tcm(self.composite.result, self.composite.result.num_bytes)
        return Block(program, self.composite.result, self._node(plan, (whole, *operands)), number)

    def _everywhere(self) -> tuple[Part, ...]:
        return tuple(Part(0, extent) for extent in self.composite.result.shape)

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

    def _park(self, tile: Block) -> None:
        if self.program.issuer.park(self._number(tile)) == NO_ROOM:
            raise self.program.out_of_tcm(tile.type, tile.type.num_bytes)

    def _store(self, tile: Block, place: tuple[Part, ...]) -> None:
        if self.composite.out is not None:
            store(self.program, self.composite.out.pointers(place), tile, None)


# -- parts of operands ----------------------------------------------------------------------------


def part_of(program: Program, operand: Ref | Block, parts: tuple[Part, ...]) -> Block:
    """A part of an operand: loaded now, or a view of the block."""
    if isinstance(operand, Ref):
        return load(program, operand.pointers(parts), None, None)
    shape = tuple(part.size for part in parts)
    if shape == operand.shape:
        return operand
    node = None
    if operand.node is not None:
        place = tuple(part.slice for part in parts)
        node = Node(lambda whole: whole[place], (operand.node,), operand.node.line)
    parent = operand if operand.parent is None else operand.parent
    return Block(program, block_type(operand.dtype, shape), node, operand.held, parent)


def _part_of_stage(
    stage: Stage, program: Program, place: tuple[Part, ...], k_tile: int = 0
) -> tuple[Block, ...]:
    """What of a stage's operand meets a place of the result."""
    if stage.operand is None:
        return ()
    shape = stage.operand.shape
    if len(shape) <= len(place):
        return (part_of(program, stage.operand, parts_of_operand(shape, place)),)
    place = (Part(k_tile, 1), *place)  # one for each k tile
    part = part_of(program, stage.operand, parts_of_operand(shape, place))
    return (program.compute("reshape", (part,), (part.shape[1:],)),)
