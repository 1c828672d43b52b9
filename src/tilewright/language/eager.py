"""A program that computes at once, without commands or time: for functions that a kernel passes.

The combine function of a reduction or scan is written in the language; it is called on whole slabs
of elements when the value is computed, and the command that reduces is charged for it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.current import entered
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.meaning.bound import Bound
from tilewright.language.meaning.table import MEANINGS
from tilewright.language.node import constant_node, evaluate
from tilewright.language.program import Program
from tilewright.language.value import Block

__all__ = ("array_function",)


@cache
def _bound(op: str, types: tuple[BlockType, ...], attributes: tuple[Any, ...]) -> Bound:
    return MEANINGS[op].bind(types, attributes)


class _EagerProgram(Program):
    """Only what a function of values asks for; memory is out of its reach."""

    def __init__(self, around: Program) -> None:
        self.run = around.run
        self.stream = around.stream
        self.name = around.name
        self.ids = around.ids
        self.title = around.title
        self.counts = around.counts
        self._constants: dict[tuple[Any, DType, type], Block] = {}

    def __getattr__(self, name: str) -> Any:
        """What a program has beyond values: memory, commands, space."""
        if name.startswith("__"):
            raise AttributeError(name)
        found = "a combine function that uses memory"
        raise self.error(found, "values of its operands alone", "load before the reduction")

    def compute(
        self, op: str, operands: tuple[Block, ...], attributes: tuple[Any, ...] = ()
    ) -> Any:
        bound = _bound(op, tuple([operand.type for operand in operands]), attributes)
        found = bound.run(*[evaluate(operand.node) for operand in operands])  # type: ignore[arg-type]
        if isinstance(bound.type, tuple):
            return tuple(map(self._block, found, bound.type))
        return self._block(found, bound.type)

    def _made(self, op: str, kind: BlockType, make: Callable[[], Any]) -> Block:
        del op
        return self._block(make(), kind)

    def _block(self, value: Any, kind: BlockType) -> Block:
        return Block(self, kind, constant_node(np.asarray(value)), None)


def array_function(program: Program, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of blocks as one of arrays, for the meaning of reductions and scans."""

    def on_arrays(*arrays: np.ndarray[Any, Any]) -> Any:
        eager = _EagerProgram(program)
        blocks = [
            eager._block(each, block_type(dtype_of(each.dtype), each.shape)) for each in arrays
        ]
        with entered(eager):
            found = function(*blocks)
        if isinstance(found, tuple):
            return tuple(evaluate(eager.block(each).node) for each in found)  # type: ignore[arg-type]
        return evaluate(eager.block(found).node)  # type: ignore[arg-type]

    return on_arrays
