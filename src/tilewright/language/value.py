"""What a kernel holds: blocks that are computed, and indices, masks and addresses that are not."""

from math import prod
from typing import Any, Protocol

from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, int1
from tilewright.language.node import Node

__all__ = ("Block", "Executor", "Index", "Mask", "PointerType", "Pointers", "Value")


class Executor(Protocol):
    """Who carries out what is said to a value: the program that holds it."""

    def binary(self, op: str, left: Any, right: Any) -> Any: ...
    def unary(self, op: str, value: Any) -> Any: ...
    def subscript(self, value: Any, key: Any) -> Any: ...
    def convert(self, value: Any, dtype: Any, bitcast: bool) -> Any: ...
    def method(self, name: str, value: Any, args: tuple[Any, ...], kwargs: Any) -> Any: ...
    def number(self, value: Any) -> Any: ...
    def release(self, number: int) -> None: ...


class Value:
    """A value of a program, which decides what arithmetic on it costs."""

    __slots__ = ("program",)

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
        if fp_downcast_rounding is not None:
            return self.program.method(
                "cast", self, (dtype,), {"fp_downcast_rounding": fp_downcast_rounding}
            )
        return self.program.convert(self, dtype, bitcast)

    def cast(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Any:
        return self.to(dtype, fp_downcast_rounding, bitcast)

    def __getitem__(self, key: Any) -> Any:
        return self.program.subscript(self, key)

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

    def __index__(self) -> int:
        return int(self.program.number(self))

    def __float__(self) -> float:
        return float(self.program.number(self))

    def __add__(self, other: Any) -> Any:
        return self.program.binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.program.binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.program.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.program.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.program.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.program.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.program.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.program.binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.program.binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.program.binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self.program.binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.program.binary("mod", other, self)

    def __and__(self, other: Any) -> Any:
        return self.program.binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self.program.binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self.program.binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self.program.binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self.program.binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.program.binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self.program.binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self.program.binary("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self.program.binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self.program.binary("shr", other, self)

    def __lt__(self, other: Any) -> Any:
        return self.program.binary("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self.program.binary("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.program.binary("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.program.binary("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return self.program.binary("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self.program.binary("ne", self, other)

    __hash__ = None  # type: ignore[assignment]  # equality gives a block

    def __neg__(self) -> Any:
        return self.program.unary("neg", self)

    def __invert__(self) -> Any:
        return self.program.unary("not", self)


_METHOD_NAMES = """
    abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor broadcast_to cdiv ceil cos cumprod cumsum erf exp
    exp2 expand_dims flip floor gather histogram load log log2 logical_and logical_or max min
    permute ravel reduce reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn store sum trans
    view xor_sum
"""
METHODS = frozenset(_METHOD_NAMES.split())


class Block(Value):
    """A value that commands compute: its type now, its elements later.

    ``number`` is the issuer's value; None for a constant, which is part of the commands that use
    it. A view lies where its ``parent`` does and has the same number.
    """

    __slots__ = ("node", "number", "parent", "type")

    def __init__(
        self,
        program: Executor,
        kind: BlockType,
        node: Node | None,
        number: int | None,
        parent: "Block | None" = None,
    ) -> None:
        self.program = program
        self.type = kind
        self.node = node  # None where only time is asked for
        self.number = number
        self.parent = parent

    def __del__(self) -> None:
        if self.parent is None and self.number is not None:
            self.program.release(self.number)

    def __repr__(self) -> str:
        return f"<Block {self.type}>"


class Index(Value):
    """Integers of the form base + strides: no command computes them unless somebody must."""

    __slots__ = ("affine", "type")

    def __init__(self, program: Executor, affine: Affine, dtype: DType) -> None:
        self.program = program
        self.affine = affine
        self.type = block_type(dtype, affine.shape)

    def __repr__(self) -> str:
        return f"<Index {self.type}, {self.affine.base} + {self.affine.strides}>"


class Mask(Value):
    """True inside a box of places."""

    __slots__ = ("box", "type")

    def __init__(self, program: Executor, box: Box) -> None:
        self.program = program
        self.box = box
        self.type = block_type(int1, box.shape)

    def __repr__(self) -> str:
        return f"<Mask {list(self.shape)}, true in {self.box.low}..{self.box.high}>"


class PointerType:
    """The dtype of addresses: what they point to."""

    __slots__ = ("element_ty",)

    def __init__(self, element_ty: DType) -> None:
        self.element_ty = element_ty

    @property
    def scalar(self) -> "PointerType":
        return self

    def is_ptr(self) -> bool:
        return True

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and other.element_ty is self.element_ty

    def __hash__(self) -> int:
        return hash(self.element_ty)

    def __repr__(self) -> str:
        return f"pointer<{self.element_ty}>"


class Pointers(Value):
    """Addresses of the form base + strides, plus computed offsets where there are any."""

    __slots__ = ("affine", "element", "offsets", "type")

    def __init__(
        self, program: Executor, affine: Affine, element: DType, offsets: Value | None = None
    ) -> None:
        self.program = program
        self.affine = affine  # in bytes; of int4 in halves of a byte
        self.element = element
        self.type = PointerType(element)
        self.offsets = offsets  # a block of whole elements, broadcast to the shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self.affine.shape

    @property
    def dtype(self) -> Any:
        return PointerType(self.element)

    def __repr__(self) -> str:
        return f"<Pointers to {self.element}{list(self.shape)} at {self.affine.base:#x}>"
