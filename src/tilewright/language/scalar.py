"""Scalars of a kernel whose values are always known: program ids, arguments, results on them.

They are Python numbers, so that they go wherever a number goes (``range``, ``if``, a list index),
and they know their dtype, so that they promote blocks as Triton's runtime scalars do. A plain
Python number in a kernel is weak: it takes the dtype of what it meets.
"""

from typing import Any, ClassVar

import numpy as np
from greenlet import getcurrent

from tilewright.errors import KernelError
from tilewright.language.dtype import DType, dtype_of, float32, int32, int64
from tilewright.language.front import IntegerFields
from tilewright.language.pointer_type import PointerType

__all__ = (
    "INT32_LIMIT",
    "INT64_LIMIT",
    "Float32",
    "Int32",
    "Int64",
    "Scalar",
    "scalar_result",
    "strong_scalar",
)

INT32_LIMIT = 2**31
INT64_LIMIT = 2**63


class Int32(IntegerFields):
    """An int32 that never wraps: what does not fit is an error that says so."""

    __slots__ = ()

    dtype: ClassVar[DType] = int32
    shape: ClassVar[tuple[int, ...]] = ()

    @property
    def type(self) -> DType:
        return self.dtype

    def to(self, dtype: Any, *, bitcast: bool = False) -> Any:
        """The same number as another dtype."""
        return converted(self, dtype, bitcast)

    def __repr__(self) -> str:
        return int.__repr__(self)


class Int64(Int32):
    """An int64."""

    __slots__ = ()

    dtype: ClassVar[DType] = int64


class Float32(float):
    """A float32: results of arithmetic are rounded to it."""

    dtype: ClassVar[DType] = float32
    shape: ClassVar[tuple[int, ...]] = ()

    @property
    def type(self) -> DType:
        return self.dtype

    def to(self, dtype: Any, *, bitcast: bool = False) -> Any:
        """The same number as another dtype."""
        return converted(self, dtype, bitcast)


Scalar = Int32 | Float32


def _integer(value: int, wide: bool) -> Int32:
    if wide:
        if -INT64_LIMIT <= value < INT64_LIMIT:
            return Int64(value)
        raise _overflow(value, int64, "use smaller sizes")
    if -INT32_LIMIT <= value < INT32_LIMIT:
        return Int32(value)
    raise _overflow(value, int32, "convert an operand with .to(tl.int64)")


def _overflow(value: int, dtype: DType, fix: str) -> KernelError:
    return KernelError("scalar arithmetic", f"{value}", f"a value that fits {dtype}", fix)


def _int_method(name: str) -> Any:
    plain = getattr(int, name)

    def method(self: Int32, other: Any) -> Any:
        result = plain(self, other)
        if result is NotImplemented:
            return result
        return _integer(result, type(self) is Int64 or type(other) is Int64)

    return method


def _float_method(name: str) -> Any:
    plain = getattr(float, name)

    def method(self: Float32, other: Any) -> Any:
        result = plain(self, other)
        return result if result is NotImplemented else Float32(np.float32(result))

    return method


def _quotient(left: int, right: int) -> int:
    """As in C, and so in Triton: towards zero."""
    quotient = abs(int(left)) // abs(int(right))
    return quotient if (left < 0) == (right < 0) else -quotient


def _division_method(*, remainder: bool, reflected: bool) -> Any:
    def method(self: Int32, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        result = _quotient(left, right)
        if remainder:
            result = int(left) - result * int(right)
        return _integer(result, type(self) is Int64 or type(other) is Int64)

    return method


_INT_METHODS = ["add", "sub", "mul", "and", "or", "xor", "lshift", "rshift"]
_DEFINED = {name: _int_method(f"__{name}__") for name in ("add", "sub", "mul")}
_DEFINED["floordiv"] = _division_method(remainder=False, reflected=False)
_DEFINED["mod"] = _division_method(remainder=True, reflected=False)
_COMPILED = frozenset(_DEFINED if IntegerFields is not int else ())  # these are the base's
_FLOAT_METHODS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]

for _name in sorted({*_INT_METHODS} - _COMPILED):
    setattr(Int32, f"__{_name}__", _int_method(f"__{_name}__"))
    setattr(Int32, f"__r{_name}__", _int_method(f"__r{_name}__"))
for _remainder, _name in ((False, "floordiv"), (True, "mod")):
    if _name not in _COMPILED:
        setattr(Int32, f"__{_name}__", _division_method(remainder=_remainder, reflected=False))
        setattr(Int32, f"__r{_name}__", _division_method(remainder=_remainder, reflected=True))
for _name in _FLOAT_METHODS:
    setattr(Float32, f"__{_name}__", _float_method(f"__{_name}__"))
    setattr(Float32, f"__r{_name}__", _float_method(f"__r{_name}__"))


def _true_division(self: Int32, other: Any) -> Any:
    result = int.__truediv__(self, other)
    return result if result is NotImplemented else Float32(np.float32(result))


def _negated(self: Any) -> Any:
    return strong_scalar(-int(self)) if isinstance(self, int) else Float32(-float(self))


for _class, _method, _function in (
    (Int32, "__truediv__", _true_division),
    (Int32, "__neg__", _negated),
    (Float32, "__neg__", _negated),
):
    setattr(_class, _method, _function)


def scalar_result(op: str, left: int, right: int) -> Any:
    """Of an operator, by its definition: compiled code asks where a number does not fit."""
    return _DEFINED[op](left, right)


def strong_scalar(value: int | float) -> Scalar:
    """A number as an argument of a kernel: the narrowest of int32, int64; float32."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, float):
        return Float32(np.float32(value))
    return _integer(int(value), wide=not -INT32_LIMIT <= value < INT32_LIMIT)


def converted(value: Scalar, dtype: Any, bitcast: bool) -> Any:
    """For ``.to``: stays a known scalar where one of these dtypes can hold it."""
    if isinstance(dtype, PointerType) and isinstance(value, int):
        greenlet: Any = getcurrent()
        return greenlet.tilewright_program.convert(value, dtype, False)  # as `enter_program` set it
    wanted = dtype_of(dtype)
    if bitcast or wanted not in (int32, int64, float32):
        fix = "make it a block with tl.full([], value, dtype)"
        found = f"a scalar converted to {wanted!r}"
        raise KernelError("scalar", found, "int32, int64 or float32", fix)
    if wanted is float32:
        return Float32(np.float32(value))
    return Int64(value) if wanted is int64 else _integer(int(value), wide=False)
