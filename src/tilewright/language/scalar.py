"""Scalars of a kernel whose values are always known: program ids, arguments, results on them.

They are Python numbers, so that they go wherever a number goes (``range``, ``if``, a list index),
and they know their dtype, so that they promote blocks as Triton's runtime scalars do. A plain
Python number in a kernel is weak: it takes the dtype of what it meets.

``//`` and ``%`` of a scalar are Python's. A Triton kernel divides by ``quotient`` and ``remainder``
instead, see ``triton.rewrite``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from greenlet import getcurrent

from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import PointerType
from tilewright.language.dtype import DTYPES, DType, dtype_of, float32, int4, int32, int64, uint64
from tilewright.language.front import IntegerFields
from tilewright.language.promote import (
    compared,
    computation_dtype,
    computed,
    number_as,
    reinterpreted,
    scalar_dtype,
)

INT32_LIMIT = 2**31
INT64_LIMIT = 2**63


class _Typed:
    """A number with a dtype."""

    __slots__ = ()

    dtype: ClassVar[DType]
    shape: ClassVar[tuple[int, ...]] = ()

    @property
    def type(self) -> DType:
        return self.dtype

    def to(self: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Any:
        """Return the number as another dtype, or its bits."""
        if isinstance(dtype, PointerType) and isinstance(self, int):
            greenlet: Any = getcurrent()
            program = greenlet.tilewright_program  # as `enter_program` set it
            return program.convert(self, dtype, False)
        wanted = dtype_of(dtype)
        if wanted not in _CLASSES or fp_downcast_rounding not in (None, "rtne"):
            how = "" if fp_downcast_rounding is None else f", rounded by {fp_downcast_rounding!r}"
            found = f"a scalar converted to {wanted!r}{how}"
            fix = "make it a block with tl.full([], value, dtype)"
            raise KernelError("scalar", found, "another dtype", fix)
        if bitcast:
            return _CLASSES[wanted](reinterpreted(self, self.dtype, wanted))
        return typed_scalar(self, wanted)

    cast = to


class Int32(IntegerFields, _Typed):
    """An int32 that never wraps: what does not fit is an error that says so."""

    __slots__ = ()

    dtype: ClassVar[DType] = int32

    def __repr__(self) -> str:
        return int.__repr__(self)


class Int64(Int32):
    """An int64, which never wraps either."""

    __slots__ = ()

    dtype: ClassVar[DType] = int64


class Float32(float, _Typed):
    """A float32: results of arithmetic are rounded to it."""

    dtype: ClassVar[DType] = float32


Scalar = Int32 | Float32


def _derived(dtype: DType) -> type[Scalar]:
    """The class of a dtype: below Int32 or Float32, so that Python asks it first.

    One of uint64 is below Int64, which it promotes.
    """
    base: Any = Float32 if dtype.is_floating() else Int64 if dtype is uint64 else Int32
    name = dtype.language_name.replace("uint", "UInt").replace("int", "Int")
    made: type[Scalar] = type(name[0].upper() + name[1:], (base,), {"dtype": dtype})
    return made


_CLASSES: Mapping[DType, type[Scalar]] = MappingProxyType(
    {dtype: _derived(dtype) for dtype in DTYPES if dtype not in (int4, int32, int64, float32)}
    | {int32: Int32, int64: Int64, float32: Float32}
)
Int1 = _CLASSES[dtype_of("int1")]


def typed_scalar(value: int | float, dtype: DType) -> Scalar:
    """Make a scalar of a number, rounded or wrapped to its dtype.

    >>> typed_scalar(300, dtype_of("int8")), typed_scalar(0.1, float32) == 0.1
    (44, True)
    """
    return _CLASSES[dtype](number_as(value, dtype))


def strong_scalar(value: int | float) -> Scalar:
    """A number as an argument of a kernel: the narrowest of int32, int64 and uint64; float32."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, float):
        return typed_scalar(value, float32)
    value = int(value)
    if -INT32_LIMIT <= value < INT32_LIMIT:
        return Int32(value)
    if -INT64_LIMIT <= value < INT64_LIMIT:
        return Int64(value)
    if 0 <= value < 2 * INT64_LIMIT:
        return typed_scalar(value, uint64)
    raise KernelError("scalar", f"{value}", "a value that fits 64 bits", "use smaller sizes")


def strong_number(value: Any) -> Any:
    """Give a dtype to numbers that a Triton kernel assigns, also to those in a tuple or a list."""
    if type(value) in (int, bool, float):
        dtype = scalar_dtype(value, "assignment")
        return _CLASSES[dtype](number_as(value, dtype))
    if isinstance(value, tuple):
        parts = map(strong_number, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return [strong_number(part) for part in value] if type(value) is list else value


def scalar_result(op: str, left: Any, right: Any) -> Any:
    """Compute an operator by its definition; compiled code asks for what it does not do itself."""
    operands = [each.dtype if isinstance(each, Scalar) else each for each in (left, right)]
    value, dtype = computed(op, left, right, operands[0], operands[1])
    return _CLASSES[dtype](value)


def constant_dtype(op: str, value: Any, beside: Any) -> DType:
    """Return the dtype of a number beside another operand of an op.

    A scalar of the language has its dtype; a number in the kernel's text is weak.
    """
    if isinstance(value, Scalar):
        return value.dtype
    dtype = getattr(beside, "dtype", None)
    if type(dtype) is not DType:
        return scalar_dtype(value, op)
    dtype = computation_dtype(op, dtype, value)
    if dtype.is_floating() or dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
        return dtype
    fix = f"convert the block, or write tl.full([], {value}, dtype)"  # 300 means nothing as int8
    raise KernelTypeError(op, f"{value} beside {dtype!r}", f"a number that fits {dtype}", fix)


# -- operators -----------------------------------------------------------------------------------


def _method(op: str, *, reflected: bool) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return scalar_result(op, other, self) if reflected else scalar_result(op, self, other)

    return method


def _comparison(op: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        right = other.dtype if isinstance(other, Scalar) else other
        return compared(op, self, other, self.dtype, right)

    return method


def _negated(self: Any) -> Any:
    if isinstance(self, int):
        return scalar_result("sub", type(self)(0), self)
    return type(self)(-float(self))


_BINARY = {
    name: name for name in ["add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor"]
}
_BINARY |= {"truediv": "div", "lshift": "shl", "rshift": "shr"}
_COMPILED = frozenset(_BINARY) - {"truediv", "pow"}
_ORDER = ("lt", "le", "gt", "ge", "eq", "ne")


def _define(kind: Any, *, is_compiled: bool) -> None:
    """Give a class its operators; those of compiled classes are inherited."""
    for name, op in _BINARY.items():
        if not (is_compiled and name in _COMPILED):
            setattr(kind, f"__{name}__", _method(op, reflected=False))
            setattr(kind, f"__r{name}__", _method(op, reflected=True))
    if not is_compiled:
        for name in _ORDER:
            setattr(kind, f"__{name}__", _comparison(name))
        kind.__hash__ = float.__hash__ if issubclass(kind, float) else int.__hash__
    kind.__neg__, kind.__pos__ = _negated, lambda self: self
    if issubclass(kind, int):
        kind.__invert__ = lambda self: scalar_result("xor", self, typed_scalar(-1, self.dtype))


for _kind in _CLASSES.values():
    _define(_kind, is_compiled=_kind in (Int32, Int64) and IntegerFields is not int)
