"""Tensors in memory that have a name, and what else a composite may be given."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tilewright.language.affine import Affine
from tilewright.language.block_type import BlockType, PointerType, block_type
from tilewright.language.executor import Executor
from tilewright.language.pointer_convert import is_integer, no_dtype, pointers_of
from tilewright.language.tiling import Part
from tilewright.language.value import Block, Pointers


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor in memory that has a name and has not moved."""

    program: Executor
    base: Pointers
    type: BlockType
    strides: tuple[int, ...]  # in elements

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    def pointers(self, parts: tuple[Part, ...] | None = None) -> Pointers:
        """Addresses of a part of the tensor, or of all of it."""
        if parts is None:
            parts = tuple(Part(0, extent) for extent in self.shape)
        step = self.type.dtype.step
        strides = tuple(stride * step for stride in self.strides)
        start = sum(part.start * stride for part, stride in zip(parts, strides, strict=True))
        shape = tuple(part.size for part in parts)
        affine = Affine(self.base.affine.base + start, strides, shape)
        return Pointers(self.program, affine, self.type.dtype)


def make_ref(program: Executor, pointer: Any, shape: Any, dtype: Any, strides: Any) -> Ref:
    """Row by row without gaps, unless strides say otherwise. An integer address needs a dtype."""
    if is_integer(pointer):
        if dtype is None:
            raise no_dtype(program, pointer)
        pointer = pointers_of(program, pointer, program.dtype(dtype))
    if not isinstance(pointer, Pointers) or pointer.shape or pointer.offsets is not None:
        fix = "pass a tensor argument, one plus a number, or an integer address"
        raise program.error(f"{pointer!r} as the start of a tensor", "one address", fix)
    extents = program.extents(shape)
    if dtype is not None:
        pointer = program.convert(pointer, PointerType(program.dtype(dtype)), False)
    if strides is None:
        inner = accumulate(reversed(extents[1:]), int.__mul__, initial=1)
        strides = tuple(reversed(list(inner))) if extents else ()
    steps = tuple(int(stride) for stride in strides)
    if len(steps) != len(extents):
        found = f"the strides {steps} for the shape {extents}"
        raise program.error(found, "a stride an axis", "correct the strides")
    return Ref(program, pointer, block_type(pointer.element, extents), steps)


def as_operand(program: Executor, value: Any) -> Ref | Block:
    """What a composite may be given; everything else is refused."""
    if isinstance(value, Ref):
        return value
    if isinstance(value, Block):
        block: Block = program.placed(value)
        return block
    if isinstance(value, Pointers):
        fix = "name its shape with tl.ref(ptr, shape)"
        raise program.error(f"{value!r} as an operand", "a ref or a block", fix)
    number: Block = program.block(value)
    return number


def as_factor(program: Executor, value: Any) -> Ref | Block:
    """The same for a product, which reads a transposed block as it lies."""
    return value if isinstance(value, Block) else as_operand(program, value)
