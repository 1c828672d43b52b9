"""Addresses that a kernel has: as integers, as tensors with a name, as windows on tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import BlockType, PointerType, block_type
from tilewright.language.dtype import DType, int4, int64, uint64
from tilewright.language.executor import Executor
from tilewright.language.front import Node
from tilewright.language.source import source_line
from tilewright.language.value import Block, Index, Mask, Pointers


def is_integer(value: Any) -> bool:
    """Return whether a value can be an address: a number, an index or a block of integers."""
    if isinstance(value, Block):
        return bool(value.dtype.is_int())
    return isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool))


def no_dtype(program: Executor, value: Any) -> KernelError:
    """Return the error of an integer address whose elements nobody has named."""
    found = f"the integer address {value!r} without a dtype"
    fix = (
        "write tl.load(address, shape=..., dtype=...), tl.ref(address, shape, dtype) or "
        "tl.cast(address, tl.pointer_type(dtype)); to store a number, give it a dtype by tl.full"
    )
    return program.error(found, "pointers, or an address and the dtype of its elements", fix)


def pointers_to(program: Executor, pointers: Pointers, element: DType) -> Pointers:
    """Return the same addresses, of elements of another dtype."""
    if pointers.element is element or int4 not in (pointers.element, element):
        return Pointers(program, pointers.affine, element, pointers.offsets)
    if element is int4 and pointers.offsets is None:
        return Pointers(program, pointers.affine.scaled(2), element)
    return Pointers(program, _in_bytes(program, pointers, str(element)), element)


def _in_bytes(program: Executor, pointers: Pointers, wanted: str) -> Affine:
    """Known addresses in bytes; those of halves of bytes have to begin with the first half."""
    affine = pointers.affine
    halves = (affine.base, *affine.strides) if pointers.element is int4 else ()
    if pointers.offsets is not None or any(half % 2 for half in halves):
        found = f"addresses of {pointers.element} converted to {wanted}"
        raise program.error(found, "addresses of whole bytes", "convert before you add offsets")
    if not halves:
        return affine
    strides = tuple(stride // 2 for stride in affine.strides)
    return Affine(affine.base // 2, strides, affine.shape)


def address_of(program: Executor, pointers: Pointers) -> int:
    """Return one address as a number of bytes; waits for an offset that is computed."""
    if pointers.shape:
        found = f"addresses of shape {pointers.shape} where Python needs one number"
        raise program.error(found, "one address", "convert them with .to(tl.int64)")
    return int(program.number(integers_of(program, pointers, int64)))


def integers_of(program: Executor, pointers: Pointers, dtype: Any) -> Any:
    """Return addresses as integers: an index where they are known, else a computed block."""
    wanted = program.dtype(dtype)
    if wanted not in (int64, uint64):
        fix = "convert to tl.int64, or tl.pointer_type(dtype)"
        expected = "int64, uint64 or a pointer type"
        raise program.error(f"addresses converted to {wanted!r}", expected, fix)
    pointers = program.untagged(pointers)
    if pointers.offsets is None or pointers.element is int4:
        found = Index(program, _in_bytes(program, pointers, str(wanted)), int64)
    else:
        scaled = program.convert(pointers.offsets, int64, False) * pointers.element.step
        found = scaled + Index(program, pointers.affine, int64)
    return found if wanted is int64 else program.convert(found, wanted, False)


def pointers_of(program: Executor, value: Any, element: DType) -> Pointers:
    """Return integers as addresses of elements; one that is computed is waited for."""
    if not is_integer(value):
        fix = "convert integers of bytes, as .to(tl.int64) of a pointer gives them"
        raise program.error(f"{value!r} as an address", "an integer", fix)
    if isinstance(value, Block) and value.shape:
        return _computed_pointers(program, value, element)
    known = value.affine if isinstance(value, Index) else None
    if known is None or not known.shape:
        number = value if isinstance(value, int) else program.number(value)
        found: Pointers = program.pointers(int(number), element)
        return found
    first = program.pointers(known.base, element).affine.base  # as a program has its addresses
    scale = 2 if element is int4 else 1
    strides = tuple(stride * scale for stride in known.strides)
    return Pointers(program, Affine(first, strides, known.shape), element)


def _computed_pointers(program: Executor, block: Block, element: DType) -> Pointers:
    """A block of addresses as offsets from 0: another look at the same bytes, and no command."""
    kind = block_type(int64, block.shape)
    node = None
    if block.node is not None:
        node = Node(partial(_whole_elements, element=element), (block.node,), source_line())
    parent = block if block.parent is None else block.parent
    offsets = Block(program, kind, node, block.number, parent)
    return Pointers(program, Affine(0, (0,) * len(kind.shape), kind.shape), element, offsets)


def _whole_elements(addresses: Any, *, element: DType) -> Any:
    """How many elements there are before each address, in the unit of offsets."""
    item_bits = 4 if element is int4 else 8 * element.step
    elements, rest = np.divmod(np.asarray(addresses).astype(np.int64) * 8, item_bits)
    if rest.any():
        address = int(np.asarray(addresses)[rest != 0].flat[0])
        found = f"the address {address:#x} of a block, for elements of {element}"
        expected = f"a multiple of {item_bits // 8} bytes"
        raise KernelError("pointers", found, expected, "load it as bytes, or align the address")
    return elements


@dataclass(frozen=True, slots=True)
class Part:
    """A range of places on one axis."""

    start: int
    size: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.size)


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
        start, sizes = [part.start for part in parts], tuple(part.size for part in parts)
        return _addresses(self, start, sizes)


def _addresses(tensor: "Ref | Window", start: Sequence[int], shape: tuple[int, ...]) -> Pointers:
    """Return the addresses of a block of a tensor: where it starts, in elements, and its shape."""
    base = tensor.base
    strides = tuple(stride * base.element.step for stride in tensor.strides)
    first = base.affine.base + sum(map(int.__mul__, strides, start))
    return Pointers(tensor.program, Affine(first, strides, shape), base.element, base.offsets)


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


@dataclass(frozen=True, slots=True)
class _Tiled:
    """A tensor in memory with the shape of its blocks."""

    program: Executor
    base: Pointers
    shape: tuple[int, ...]  # of the tensor
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]

    def starts(self, offsets: Any) -> tuple[int, ...]:
        """Return offsets of a block as numbers, one an axis."""
        found = tuple(int(offset) for offset in offsets)
        if len(found) != len(self.shape):
            text = f"{len(found)} offsets for {len(self.shape)} axes"
            raise self.program.error(text, "one an axis", "correct the offsets")
        return found


@dataclass(frozen=True, slots=True)
class Window(_Tiled):
    """A block of a tensor: where it starts, in elements, and which part of it the tensor has."""

    offsets: tuple[int, ...]

    @property
    def dtype(self) -> PointerType:
        return PointerType(self.base.element)

    def advance(self, offsets: Any) -> "Window":
        """Moved by so many elements on each axis."""
        return replace(self, offsets=tuple(map(int.__add__, self.offsets, self.starts(offsets))))

    def pointers(self) -> Pointers:
        """The addresses of all places of the block, inside the tensor or not."""
        return _addresses(self, self.offsets, self.block_shape)

    def mask(self, axes: tuple[int, ...]) -> Mask:
        """The places that lie inside the tensor on these axes."""
        box = Box.whole(self.block_shape)
        for axis in axes:
            low, high = -self.offsets[axis], self.shape[axis] - self.offsets[axis]
            box = box.both(Box.slab(self.block_shape, axis, low, high))
        return Mask(self.program, box)


@dataclass(frozen=True, slots=True)
class TensorDescriptor(_Tiled):
    """A tensor in memory with the shape of the blocks that are read from it."""

    @property
    def dtype(self) -> DType:
        return self.base.element

    def window(self, offsets: Any) -> Window:
        """The block that starts there."""
        sizes = (self.shape, self.strides, self.block_shape)
        return Window(self.program, self.base, *sizes, self.starts(offsets))

    def load(self, offsets: Any) -> Any:
        """Zero outside the tensor."""
        return self.program.method("load", self.window(offsets), (), self._checks())

    def store(self, offsets: Any, value: Any) -> None:
        """Nothing outside the tensor."""
        self.program.method("store", self.window(offsets), (value,), self._checks())

    def _checks(self) -> dict[str, Any]:
        return {"boundary_check": tuple(range(len(self.shape)))}
