"""Types of values: of a block dtype and shape, one object for each; of addresses their element."""

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from tilewright.errors import KernelTypeError
from tilewright.language.dtype import DType, dtype_of


@dataclass(frozen=True, eq=False, slots=True)
class BlockType:
    """Made by ``block_type`` only: equal means identical. A scalar has the shape ``()``."""

    dtype: DType
    shape: tuple[int, ...]
    num_elements: int
    num_bytes: int  # packed: two int4 a byte

    @property
    def scalar(self) -> DType:
        """The dtype of an element; Triton's name for it."""
        return self.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    def with_dtype(self, dtype: DType) -> "BlockType":
        return block_type(dtype, self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> "BlockType":
        return block_type(self.dtype, shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"block_type({self.dtype!r}, {self.shape})"

    def __reduce__(self) -> tuple[Any, ...]:
        return block_type, (self.dtype, self.shape)  # a copy would be a second object


@cache
def block_type(dtype: DType, shape: tuple[int, ...]) -> BlockType:
    """The one type of blocks of that dtype and shape.

    >>> from tilewright.language.dtype import float16
    >>> tile = block_type(float16, (64, 128))
    >>> tile is block_type(float16, (64, 128)), str(tile), tile.num_bytes
    (True, 'fp16[64, 128]', 16384)
    """
    for extent in shape:
        if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
            found = f"the extent {extent!r} in the shape {shape}"
            expected = "whole numbers from 1 up"
            raise KernelTypeError("block type", found, expected, "change the shape")
    num_elements = prod(shape)
    num_bytes = -(-num_elements * dtype.bits // 8)
    return BlockType(dtype, shape, num_elements, num_bytes)


class PointerType:
    """The dtype of addresses: what they point to."""

    __slots__ = ("element_ty",)

    def __init__(self, element_ty: DType | str) -> None:
        self.element_ty = element_ty if type(element_ty) is DType else dtype_of(element_ty)

    @property
    def scalar(self) -> "PointerType":
        return self

    def is_ptr(self) -> bool:
        return True

    def is_floating(self) -> bool:
        return False

    is_int = is_floating

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and other.element_ty is self.element_ty

    def __hash__(self) -> int:
        return hash(self.element_ty)

    def __repr__(self) -> str:
        return f"pointer<{self.element_ty}>"
