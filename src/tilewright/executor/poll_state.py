"""The state of a running kernel, to tell whether a loop has come back to where it was."""

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from inspect import CO_OPTIMIZED
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from tilewright.language.affine import Affine
from tilewright.language.block_type import BlockType, PointerType
from tilewright.language.dtype import DType
from tilewright.language.front import FUNCTION_TYPES
from tilewright.language.source import is_ours
from tilewright.language.value import Block, Index, Mask, Pointers

MAX_PARTS = 256  # of a tuple, list or dict
MAX_BYTES = 4096  # of an array

NUMBERS = (bool, int, float, complex, str, bytes, range, type(None), np.generic)
FIXED = (*FUNCTION_TYPES, BuiltinFunctionType, ModuleType, type, DType, BlockType, PointerType)
CHANGES_ELSEWHERE = frozenset(
    ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR")
)


class _UnknownError(Exception):
    """Something whose state cannot be told."""


def kernel_state() -> tuple[Any, ...] | None:
    """Return where the calling kernel is, with the values of all its variables.

    Two equal states lead to the same steps while memory stays as it is. None: a variable or a
    function of the kernel may hide what it remembers. The state of a loop over an iterator that
    repeats itself is hidden too; whoever compares states has to allow for that.
    """
    try:
        return tuple(_frame_state(frame) for frame in _kernel_frames())
    except _UnknownError:
        return None


def _kernel_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code):
            yield frame
        frame = frame.f_back


def _frame_state(frame: FrameType) -> tuple[Any, ...]:
    code = frame.f_code
    if _changes_elsewhere(code):
        raise _UnknownError
    variables = frame.f_locals
    try:
        state = tuple((name, _value_state(value)) for name, value in variables.items())
    finally:
        if isinstance(variables, dict):
            variables.clear()  # a copy, which would keep values that the kernel has let go of
    return code, frame.f_lasti, state


@lru_cache(1024)
def _changes_elsewhere(code: CodeType) -> bool:
    """Whether a function may change more than its own variables."""
    if not code.co_flags & CO_OPTIMIZED:
        return True
    return any(each.opname in CHANGES_ELSEWHERE for each in dis.get_instructions(code))


def _value_state(value: Any) -> Any:
    if isinstance(value, NUMBERS):
        return type(value), repr(value)
    if isinstance(value, FIXED):
        return value
    match value:
        case Block():
            return _block_state(value)
        case Pointers():
            offsets = None if value.offsets is None else _value_state(value.offsets)
            return value.element, _affine_state(value.affine), offsets
        case Index():
            return value.dtype, _affine_state(value.affine)
        case Mask():
            return value.box.shape, value.box.low, value.box.high
        case tuple() | list() if len(value) <= MAX_PARTS:
            return type(value), tuple(map(_value_state, value))
        case dict() if len(value) <= MAX_PARTS:
            return tuple((_value_state(key), _value_state(part)) for key, part in value.items())
    raise _UnknownError


def _affine_state(affine: Affine) -> tuple[Any, ...]:
    return affine.base, affine.strides, affine.shape


def _block_state(block: Block) -> Any:
    """Return the elements if they are known, else the computation that gives them."""
    node = block.node
    if node is None or node.run is not None:
        return block.type, node
    array = np.asarray(node.value)
    if array.nbytes > MAX_BYTES:
        return block.type, node
    return block.type, array.tobytes()
