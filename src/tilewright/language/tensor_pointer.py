"""Windows on tensors in memory: block pointers and tensor descriptors."""

from dataclasses import dataclass, replace
from typing import Any

from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import PointerType
from tilewright.language.dtype import DType
from tilewright.language.executor import Executor
from tilewright.language.value import Mask, Pointers


@dataclass(frozen=True, slots=True)
class Window:
    """A block of a tensor: where it starts, in elements, and which part of it the tensor has."""

    program: Executor
    base: Pointers
    shape: tuple[int, ...]  # of the tensor
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]

    @property
    def dtype(self) -> PointerType:
        return PointerType(self.base.element)

    def advance(self, offsets: Any) -> "Window":
        """Moved by so many elements on each axis."""
        moved = tuple(int(a) + int(b) for a, b in zip(self.offsets, offsets, strict=True))
        return replace(self, offsets=moved)

    def pointers(self) -> Pointers:
        """The addresses of all places of the block, inside the tensor or not."""
        step = self.base.element.step
        strides = tuple(stride * step for stride in self.strides)
        start = sum(map(int.__mul__, strides, self.offsets))
        affine = Affine(self.base.affine.base + start, strides, self.block_shape)
        return Pointers(self.program, affine, self.base.element, self.base.offsets)

    def mask(self, axes: tuple[int, ...]) -> Mask:
        """The places that lie inside the tensor on these axes."""
        box = Box.whole(self.block_shape)
        for axis in axes:
            low, high = -self.offsets[axis], self.shape[axis] - self.offsets[axis]
            box = box.both(Box.slab(self.block_shape, axis, low, high))
        return Mask(self.program, box)


@dataclass(frozen=True, slots=True)
class TensorDescriptor:
    """A tensor in memory with the shape of the blocks that are read from it."""

    program: Executor
    base: Pointers
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.base.element

    def window(self, offsets: Any) -> Window:
        """The block that starts there."""
        start = tuple(int(offset) for offset in offsets)
        if len(start) != len(self.shape):
            found = f"{len(start)} offsets for {len(self.shape)} axes"
            raise self.program.error(found, "one an axis", "correct the offsets")
        return Window(self.program, self.base, self.shape, self.strides, start, self.block_shape)

    def load(self, offsets: Any) -> Any:
        """Zero outside the tensor."""
        return self.program.method("load", self.window(offsets), (), self._checks())

    def store(self, offsets: Any, value: Any) -> None:
        """Nothing outside the tensor."""
        self.program.method("store", self.window(offsets), (value,), self._checks())

    def _checks(self) -> dict[str, Any]:
        return {"boundary_check": tuple(range(len(self.shape)))}
