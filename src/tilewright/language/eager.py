"""An executor that computes at once, without commands or time: for functions that a kernel passes.

The combine function of a reduction or scan is written in the language; it is called on whole slabs
of elements when the value is computed, and the command that reduces is charged for it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import dtype_of
from tilewright.language.executor import Executor, entered
from tilewright.language.front import constant_node, evaluate
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Bound
from tilewright.language.value import Block
from tilewright.language.value_executor import ValueExecutor


@cache
def _bound(op: str, types: tuple[BlockType, ...], attributes: tuple[Any, ...]) -> Bound:
    return MEANINGS[op].bind(types, attributes)


class _EagerExecutor(ValueExecutor):
    """Computes with values on arrays; memory, composites and messages are out of its reach."""

    def __init__(self, around: Executor) -> None:
        super().__init__()
        self._around = around
        self.ids = around.ids
        self.title = around

    def place(self, axis: Any) -> tuple[int, int]:
        return self._around.place(axis)

    def method(self, name: str, value: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return self._around.method(name, value, args, kwargs)

    def array_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._around.array_function(function)

    def placed(self, block: Block) -> Block:
        return block  # its elements are an array, in their order

    def release(self, number: int) -> None:
        """Do nothing: blocks of arrays take no space of a PE."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """Raise the error of what is more than values: memory, composites, messages."""
        found = "a combine function that uses memory"
        raise self.error(found, "values of its operands alone", "load before the reduction")

    load = store = atomic = atomic_load = atomic_store = note_poll = _refuse
    composite = send = receive = peek = _refuse

    def compute(
        self, op: str, operands: tuple[Block, ...], attributes: tuple[Any, ...] = ()
    ) -> Any:
        bound = _bound(op, tuple([operand.type for operand in operands]), attributes)
        found = bound.run(*[evaluate(operand.node) for operand in operands])  # type: ignore[arg-type]
        if isinstance(bound.type, tuple):
            return tuple(map(self._block, found, bound.type))
        return self._block(found, bound.type)

    def _made(self, _op: str, kind: BlockType, make: Callable[[], Any]) -> Block:
        return self._block(make(), kind)

    def _block(self, value: Any, kind: BlockType) -> Block:
        return Block(self, kind, constant_node(np.asarray(value)), None)


def array_function(program: Executor, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of blocks as one of arrays, for the meaning of reductions and scans."""

    def on_arrays(*arrays: np.ndarray[Any, Any]) -> Any:
        eager = _EagerExecutor(program)
        blocks = [
            eager._block(each, block_type(dtype_of(each.dtype), each.shape)) for each in arrays
        ]
        with entered(eager):
            found = function(*blocks)
        if isinstance(found, tuple):
            return tuple(evaluate(eager.block(each).node) for each in found)  # type: ignore[arg-type]
        return evaluate(eager.block(found).node)  # type: ignore[arg-type]

    return on_arrays
