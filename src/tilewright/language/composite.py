"""Composites: one command that walks over tiles, told to the scheduler as a whole."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilewright.engine.core import NO_ROOM, NO_VALUE, NO_WALK
from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType
from tilewright.language.composite_epilogue import Scope, Stage
from tilewright.language.composite_operand import Ref, part_of
from tilewright.language.dma import store
from tilewright.language.node import Node
from tilewright.language.program import Program
from tilewright.language.run import Plan
from tilewright.language.source import line_text, source_line
from tilewright.language.tiling import Part, Tiling
from tilewright.language.value import Block

__all__ = ("Pending", "TileWork", "run_composite")


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


class TileWork(Protocol):
    """How one tile of the result is computed; a GEMM and an op of the vector unit differ here."""

    def tile(self, composite: "Composite", place: tuple[Part, Part]) -> Block:
        """Issue all commands of a tile."""
        ...


@dataclass
class Composite:
    """What is being told. Without ``out`` all tiles lie in one value, the result."""

    program: Program
    result: BlockType
    tiling: Tiling
    stages: Sequence[Stage]
    out: Ref | None
    whole: Block | None = field(default=None, init=False)

    # -- values that commands update -------------------------------------------------------------

    def begin(self, plan: Plan, operands: tuple[Block, ...]) -> Block:
        """The first command of a tile of the result."""
        if self.out is not None:
            return self.fresh(plan, operands)
        kind = plan.types[0]
        if self.whole is None:
            plan = self._spread(plan)
            number = self._issue(plan, NO_VALUE, operands)
            self.whole = Block(self.program, self.result, None, number)
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
        operands = stage.part(self.program, place, k_tile)
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
        key = ("composite", (self.result, *plan.types), (plan.vector_ps, plan.gemm_ps))
        plans = self.program.run.plans
        if key not in plans:
            wide = Plan((self.result,), plan.run, plan.vector_ps, plan.gemm_ps)
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
        kernel_stages = [stage for stage in self.stages if stage.scope is Scope.KERNEL]
        tiles = []
        for place in self.tiling.outputs():
            tile = work.tile(self, place)
            for stage in self.stages:
                if stage.scope is Scope.OUTPUT_TILE:
                    self.apply(stage, tile, place)
            if self.out is not None and not kernel_stages:
                # the accumulator is free for the next tile before this one has been stored
                tile = self.program.convert(tile, self.out.dtype, False)
                self._store(tile, place)
                del tile
                continue
            if self.out is not None:
                self._park(tile)
            tiles.append((place, tile))
        if tiles:
            self._finish(tiles, kernel_stages)

    def _finish(self, tiles: list[tuple[Any, Block]], stages: list[Stage]) -> None:
        """What waits for all tiles: stages of the kernel, and then the stores or the result."""
        node = self._assembled(tiles)
        if self.out is None and self.whole is not None:
            self.whole.node = node
            for stage in stages:
                self.apply(stage, self.whole, self._everywhere())
            return
        whole = Block(self.program, self.result, node, None)
        numbers = [self._number(tile) for _, tile in tiles]
        for stage in stages:
            whole = self._whole_stage(stage, whole, numbers)
            numbers = [self._number(whole)]
        for place, _ in tiles:
            self._store(part_of(self.program, whole, place), place)

    def _whole_stage(self, stage: Stage, whole: Block, numbers: list[int]) -> Block:
        program = self.program
        operands = stage.part(program, self._everywhere())
        plan = self.plan(stage.op, (whole, *operands), stage.attributes)
        numbers = numbers + [block.number for block in operands if block.number is not None]
        number = program.issuer.compute(plan.number, numbers)
        if number == NO_ROOM:
            raise program.out_of_tcm(self.result, self.result.num_bytes)
        return Block(program, self.result, self._node(plan, (whole, *operands)), number)

    def _everywhere(self) -> tuple[Part, ...]:
        return tuple(Part(0, extent) for extent in self.result.shape)

    def _assembled(self, tiles: list[tuple[Any, Block]]) -> Node | None:
        nodes = [tile.node for _, tile in tiles if tile.node is not None]
        if len(nodes) < len(tiles):
            return None
        places = [tuple(part.slice for part in place) for place, _ in tiles]
        kind = self.result

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
        if self.out is not None:
            store(self.program, self.out.pointers(place), tile, None)


def run_composite(
    program: Program,
    work: TileWork,
    result: BlockType,
    tiling: Tiling,
    stages: Sequence[Stage],
    out: Ref | None,
    what: str,
) -> Pending:
    """Issue a composite; its end can be waited for."""
    program.hand_over_if_long()
    composite = Composite(program, result, tiling, stages, out)
    with _parts_of_one(program):
        composite.run(work)
    task = program.issuer.close_composite()
    return Pending(program, task, composite.whole, what)


@contextmanager
def _parts_of_one(program: Program) -> Iterator[None]:
    program.issuer.open_composite()
    program.compose(True)
    program.last_walk = NO_WALK
    try:
        yield
    finally:
        program.compose(False)
