"""Parts of a composite's operands: loaded when they are needed, or views of what is there."""

from tilewright.executor.dma import load
from tilewright.executor.program import Program
from tilewright.language.block_type import block_type
from tilewright.language.composite import Stage
from tilewright.language.node import Node
from tilewright.language.ref import Ref
from tilewright.language.tiling import Part, parts_of_operand
from tilewright.language.value import Block

__all__ = ("part_of", "part_of_stage")


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


def part_of_stage(
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
