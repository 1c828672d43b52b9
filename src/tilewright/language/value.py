"""What a kernel holds: blocks that are computed, and indices, masks and addresses that are not."""

from math import prod
from typing import Any

from tilewright.language.block_type import PointerType
from tilewright.language.executor import Executor
from tilewright.language.front import (
    BlockFields,
    IndexFields,
    MaskFields,
    PointersFields,
    adopt_values,
    planned,
)
from tilewright.language.scalar import Int32, Int64, scalar_result, strong_number


@planned
def _converted(value: Any, dtype: Any, bitcast: bool) -> Any:
    return value.program.convert(value, dtype, bitcast)


class Value:
    """A value of a program: what can be said to it. Fields and operators come from the front."""

    __slots__ = ()

    program: Executor
    type: Any  # a BlockType; of addresses a PointerType

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.type.shape
        return shape

    @property
    def dtype(self) -> Any:
        """A DType; of addresses a PointerType."""
        return self.type.dtype

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def T(self) -> Any:  # noqa: N802  # Triton's name
        return self.program.method("trans", self, (), {})

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Any:
        """The same values as another dtype, or the same bits."""
        if type(self) is Block and dtype is self.type.dtype:
            return self
        if fp_downcast_rounding is not None:
            how = {"fp_downcast_rounding": fp_downcast_rounding}
            return self.program.method("cast", self, (dtype,), how)
        if isinstance(dtype, PointerType) or type(self) is Pointers:
            return self.program.convert(self, dtype, bitcast)  # it may wait for the address
        return _converted(self, dtype, bitcast)

    cast = to

    def __getattr__(self, name: str) -> Any:
        """Functions of the language that Triton also offers as methods: ``x.sum(0)``."""
        if name.startswith("_") or name not in METHODS:
            raise AttributeError(f"a {type(self).__name__.lower()} has no attribute {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.program.method(name, self, args, kwargs)

        return call

    def __bool__(self) -> bool:
        return bool(self.program.number(self))

    def __int__(self) -> int:
        return int(self.program.number(self))

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.program.number(self))

    def __str__(self) -> str:
        """The elements, for ``print``: waits until they are there. ``repr`` never does."""
        return str(self.program.printable(self))


_METHOD_NAMES = """
    abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor broadcast_to cdiv ceil cos cumprod cumsum erf exp
    exp2 expand_dims flip floor gather histogram load log log2 logical_and logical_or max min
    permute ravel reduce reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn store sum trans
    view xor_sum
"""
METHODS = frozenset(_METHOD_NAMES.split())


class Block(BlockFields, Value):
    """A value that commands compute: its type now, its elements later.

    ``number`` is the issuer's value; None for a constant, which is part of the commands that use
    it. A view lies where its ``parent`` does and has the same number. So does a transposed block
    while only products have used it, since they read it there: ``held`` is what they ask for, and
    ``transposing`` the plan of the command that whoever asks for the number issues, once.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Block {self.type}>"


class Index(IndexFields, Value):
    """Integers of the form base + strides: no command computes them unless somebody must."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Index {self.type}, {self.affine.base} + {self.affine.strides}>"


class Mask(MaskFields, Value):
    """True inside a box of places."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Mask {list(self.shape)}, true in {self.box.low}..{self.box.high}>"


class Pointers(PointersFields, Value):
    """Addresses of the form base + strides, plus computed offsets where there are any."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.affine.shape

    @property
    def dtype(self) -> Any:
        return PointerType(self.element)

    def __repr__(self) -> str:
        return f"<Pointers to {self.element}{list(self.shape)} at {self.affine.base:#x}>"


adopt_values(Index, Mask, Pointers, Block, Int32, Int64, scalar_result, strong_number)
