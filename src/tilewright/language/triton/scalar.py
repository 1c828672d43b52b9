"""What the rewritten text of a Triton kernel calls: see ``triton.rewrite``.

Here a *weak* value is what Triton calls a constexpr: a Python number that no variable holds, or
anything else that is neither a scalar with a dtype nor a value of a program.
"""

import builtins
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DType, int1, int32
from tilewright.language.executor import current_program
from tilewright.language.front import compiled_function
from tilewright.language.library import control, math
from tilewright.language.library.control import device_assert
from tilewright.language.promote import integer_dtype, scalar_dtype
from tilewright.language.scalar import (
    INT32_LIMIT,
    Int1,
    Int32,
    Scalar,
    scalar_result,
    strong_number,
    typed_scalar,
)
from tilewright.language.value import Pointers, Value

NUM_SMALL = 1024
_SMALL = [Int32(number) for number in builtins.range(NUM_SMALL)]  # indices of most loops
_PLAIN = {int, Int32}
_strong = compiled_function(strong_number)


def is_weak(value: Any) -> bool:
    """Whether Triton knows a value when it compiles."""
    return not isinstance(value, Scalar | Value)


# -- division ------------------------------------------------------------------------------------


def _division(op: str, plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator of Triton's, which is Python's of two weak numbers alone."""

    def function(left: Any, right: Any) -> Any:
        if isinstance(left, Value) or isinstance(right, Value):
            program = left.program if isinstance(left, Value) else right.program
            return program.binary(op, left, right)
        if isinstance(left, Scalar) or isinstance(right, Scalar):
            return scalar_result(op, left, right)
        return plain(left, right)

    function.__name__ = op
    return compiled_function(function)


quotient = _division("quotient", operator.floordiv)  # towards zero
remainder = _division("remainder", operator.mod)  # with the sign of the dividend


def _weak_first(op: str, plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator whose left operand may be a weak float, which Python would ask first."""

    def function(left: Any, right: Any) -> Any:
        if type(left) is float and isinstance(right, Int32):
            return scalar_result(op, left, right)
        return plain(left, right)

    function.__name__ = f"weak_{op}"
    return compiled_function(function)


def cdiv(x: Any, div: Any) -> Any:
    """The quotient of positive numbers, rounded up; of negative ones as Triton computes it."""
    return quotient(x + (div - 1), div)


def cdiv_of(value: Any) -> Any:
    """``value.cdiv``, of a module or of a value."""
    return partial(cdiv, value) if isinstance(value, Scalar | Value) else value.cdiv


# -- truth ---------------------------------------------------------------------------------------


def as_truth(value: Any) -> Any:
    """A value as int1: whether it is not 0."""
    if isinstance(value, Value):
        truth: Any = value
        return truth if value.dtype is int1 else truth != 0
    return Int1(builtins.bool(value)) if isinstance(value, Scalar) else value


def decides_and(value: Any) -> bool:
    """Whether what follows ``value and`` is not evaluated: it is known and false."""
    return not isinstance(value, Value) and not value


def decides_or(value: Any) -> bool:
    """Whether what follows ``value or`` is not evaluated: it is known and true."""
    return not isinstance(value, Value) and builtins.bool(value)


def both(left: Any, right: Any) -> Any:
    """``left and right``, where the left one does not decide."""
    if is_weak(left):
        return right
    if is_weak(right):
        return right if not right else left
    return as_truth(left) & as_truth(right)


def either(left: Any, right: Any) -> Any:
    """``left or right``, where the left one does not decide."""
    if is_weak(left):
        return right
    if is_weak(right):
        return right if right else left
    return as_truth(left) | as_truth(right)


def negation(value: Any) -> Any:
    """``not value``: a block of truths of a block."""
    if isinstance(value, Value):
        return ~as_truth(value)
    return Int1(not value) if isinstance(value, Scalar) else not value


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    """A comparison whose result is computed with: int1 unless both are weak."""
    compare = getattr(operator, name)

    def compared(left: Any, right: Any) -> Any:
        found = compare(left, right)
        if found is True or found is False:
            return found if is_weak(left) and is_weak(right) else Int1(found)
        return found

    compared.__name__ = f"compare_{name}"
    return compiled_function(compared)


def asserted(condition: Any, message: Any = "") -> bool:
    """Whether an assertion on weak values holds; one on others is checked here."""
    if is_weak(condition):
        return builtins.bool(condition)
    device_assert(condition, message)
    return True


# -- choices, returns, loops ---------------------------------------------------------------------


def chosen(condition: Any, value: Any) -> Any:
    """``value if condition else ...``: with a dtype, unless the condition is weak."""
    return value if is_weak(condition) else _strong(value)


def branched(before: bool, condition: Any) -> bool:
    """Whether a function has returned from one of several places by now, as Triton sees it."""
    return before or not is_weak(condition)


def returned(is_one_of_several: bool, value: Any) -> Any:
    """A returned value: with a dtype, where Triton sees several places that return."""
    return _strong(value) if is_one_of_several else value


class StaticRange(list[int]):
    """The constant indices of a loop that Triton unrolls: ``tl.static_range``."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        super().__init__(control.static_range(arg1, arg2, step))


def kept_types(indices: Any, *values: Any) -> tuple[Any, ...] | None:
    """Return the types of variables before a loop, or None if the loop is unrolled."""
    return None if type(indices) is StaticRange else tuple(map(_type_of, values))


def check_carried(before: tuple[Any, ...] | None, names: tuple[str, ...], *values: Any) -> None:
    """Refuse a loop after which a variable has another type than before it, as Triton does."""
    if before is None:
        return
    after = tuple(map(_type_of, values))
    if after == before:
        return
    for was, now, name in zip(before, after, names, strict=True):
        if now != was and None not in (now, was):
            found = f"{name}, {was} before the loop and {now} after it"
            fix = f"give {name} the type of the result before the loop, or convert the result"
            raise current_program().error(found, "one type through the loop", fix)


def _type_of(value: Any) -> Any:
    """Return the type that Triton compares across a loop, or None for a value without one."""
    if isinstance(value, Pointers):
        return value.type, value.shape
    if isinstance(value, Value):
        return value.type
    if isinstance(value, Scalar):
        return block_type(value.dtype, ())
    return "a constant" if isinstance(value, int | float) else None


def _bound(value: Any) -> tuple[int, DType]:
    """A bound of a loop and its dtype."""
    dtype = scalar_dtype(value, "range") if is_weak(value) else value.dtype
    if not isinstance(dtype, DType) or not dtype.is_int() or (not is_weak(value) and value.shape):
        fix = "convert the bound with .to(tl.int32)"
        raise KernelTypeError("range", f"the bound {value!r}", "one integer", fix)
    return int(value), dtype


def range(arg1: Any, arg2: Any = None, step: Any = None, **hints: Any) -> Iterator[Any]:
    """Indices of a loop, in the dtype that Triton promotes bounds and step to; hints say nothing.

    >>> [index.dtype for index in range(2)]
    [tl.int32, tl.int32]
    """
    if hints:
        control.range(0, **hints)  # knows their names
    start, stop = (0, arg1) if arg2 is None else (arg1, arg2)
    step = 1 if step is None else step
    if {type(start), type(stop), type(step)} <= _PLAIN and step > 0:  # mostly
        if 0 <= start <= stop <= NUM_SMALL:
            return iter(_SMALL[start:stop:step])
        if min(start, stop) >= -INT32_LIMIT and max(start, stop, step) < INT32_LIMIT:
            return map(Int32, builtins.range(start, stop, step))
    bounds = [_bound(each) for each in (start, stop, step)]
    indices = builtins.range(*(number for number, _ in bounds))
    if indices.step <= 0 and not is_weak(step):
        fix = "write the step as a number, or as tl.constexpr"
        found = f"the step {indices.step}, which a variable holds"
        raise KernelError("range", found, "a positive step, or one that is a constant", fix)
    dtype = reduce(integer_dtype, [dtype for _, dtype in bounds])
    if dtype is not int32:
        return iter([typed_scalar(index, dtype) for index in indices])
    return map(Int32, indices)


def _extreme(op: str) -> Callable[..., Any]:
    function, plain = getattr(math, op), getattr(builtins, op[:3])

    def extreme(*values: Any) -> Any:
        return plain(*values) if all(map(is_weak, values)) else reduce(function, values)

    extreme.__name__ = op[:3]
    return extreme


def value_of(value: Any) -> Any:
    """``value.value``: of a constant the constant itself, as Triton keeps constants."""
    if value is None or isinstance(value, bool | str | DType) or type(value) in (int, float, tuple):
        return value
    return value.value


_NAMED: dict[str, Callable[..., Any]] = {
    ".strong": _strong,
    ".add": _weak_first("add", operator.add),
    ".sub": _weak_first("sub", operator.sub),
    ".mul": _weak_first("mul", operator.mul),
    ".div": _weak_first("div", operator.truediv),
    ".quotient": quotient,
    ".remainder": remainder,
    ".and": both,
    ".or": either,
    ".decides_and": decides_and,
    ".decides_or": decides_or,
    ".not": negation,
    ".asserted": asserted,
    ".chosen": chosen,
    ".branched": branched,
    ".returned": returned,
    ".kept_types": kept_types,
    ".check_carried": check_carried,
    ".value": value_of,
    ".cdiv": cdiv_of,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    _NAMED | {f".{name}": _comparison(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
)
"""By the names that rewritten code has for them, which no text can say."""

BUILTINS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"range": range, "min": _extreme("minimum"), "max": _extreme("maximum")}
)
"""Python's own functions that mean something else in a Triton kernel."""

LANGUAGE: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"cdiv": cdiv, "range": range, "static_range": StaticRange}
)
"""Functions of the language that do."""
