"""Arithmetic on indices, masks, addresses and numbers that no command has to compute.

Every function gives the exact result, or None: then the operands have to become blocks.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.language.affine import Affine, broadcast_shapes
from tilewright.language.dtype import int64, uint32, uint64
from tilewright.language.scalar import INT32_LIMIT, INT64_LIMIT, Int1, Int32, Int64
from tilewright.language.value import Index, Mask, Pointers, Value


def known_binary(op: str, left: Any, right: Any) -> Value | None:
    """The result of a binary op, if it stays affine or a box."""
    if isinstance(left, Pointers) or isinstance(right, Pointers):
        return _pointers(op, left, right)
    if isinstance(left, Mask) or isinstance(right, Mask):
        return _masks(op, left, right)
    rule = _INDEX_RULES.get(op)
    if rule is None or not _is_integer(left) or not _is_integer(right):
        return None
    return None if _promotes(left) or _promotes(right) else rule(left, right)


def known_where(condition: Any, x: Any, y: Any) -> Index | None:
    """An index where a mask is true everywhere or nowhere: of the shape and dtype of all three."""
    if not isinstance(condition, Mask) or not _is_integer(x) or not _is_integer(y):
        return None
    if _promotes(x) or _promotes(y):
        return None
    if not condition.box.is_whole and not condition.box.is_empty:
        return None
    picked, other = (x, y) if condition.box.is_whole else (y, x)
    if not isinstance(picked, Index):
        return None
    zero = other.affine.scaled(0) if isinstance(other, Index) else Affine(0, (), ())
    shape = broadcast_shapes(condition.shape, broadcast_shapes(zero.shape, picked.shape))
    return _index(picked, picked.affine.plus(zero).broadcast(shape), other)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Index) or (isinstance(value, int) and not isinstance(value, bool))


def _promotes(value: Any) -> bool:
    """Whether a scalar makes an index unsigned."""
    return isinstance(value, Int32) and value.dtype in (uint32, uint64)


# -- indices -------------------------------------------------------------------------------------


def _index(like: Index, affine: Affine | None, other: Any = 0) -> Index | None:
    """An index in the dtype of both, unless it would wrap."""
    if affine is None:
        return None
    is_wide = other.dtype is int64 if isinstance(other, Index) else isinstance(other, Int64)
    dtype = int64 if is_wide else like.dtype
    fits = _fits(affine, INT64_LIMIT if dtype is int64 else INT32_LIMIT)
    return Index(like.program, affine, dtype) if fits else None


def _fits(affine: Affine, limit: int) -> bool:
    return affine.low >= -limit and affine.high < limit


def _add(left: Any, right: Any) -> Index | None:
    if isinstance(left, Index) and isinstance(right, Index):
        return _index(left, left.affine.plus(right.affine), right)
    index, number = (left, right) if isinstance(left, Index) else (right, left)
    return _index(index, index.affine.shifted(int(number)), number)


def _sub(left: Any, right: Any) -> Index | None:
    if isinstance(right, Index):
        negative = right.affine.scaled(-1)
        if isinstance(left, Index):
            return _index(left, left.affine.plus(negative), right)
        return _index(right, negative.shifted(int(left)), left)
    return _index(left, left.affine.shifted(-int(right)), right)


def _mul(left: Any, right: Any) -> Index | None:
    if isinstance(left, Index) and isinstance(right, Index):
        for one, other in ((left, right), (right, left)):
            if not any(one.affine.strides):
                product = other.affine.scaled(one.affine.base)
                return _index(one, product.plus(one.affine.constant(0)), other)
        return None
    index, number = (left, right) if isinstance(left, Index) else (right, left)
    return _index(index, index.affine.scaled(int(number)), number)


def _with_number(
    method: Callable[[Affine, int], Affine | None], *, is_symmetric: bool = False
) -> Callable[[Any, Any], Index | None]:
    def rule(left: Any, right: Any) -> Index | None:
        if is_symmetric and isinstance(right, Index):
            left, right = right, left
        if isinstance(left, Index) and not isinstance(right, Index):
            return _index(left, method(left.affine, int(right)), right)
        return None

    return rule


def _less(left: Any, right: Any, offset: int) -> Mask | None:
    """left - right < offset."""
    if not isinstance(left, Index):
        difference = right.affine.scaled(-1).shifted(int(left))
    elif isinstance(right, Index):
        difference = left.affine.plus(right.affine.scaled(-1))
    else:
        difference = left.affine.shifted(-int(right))
    box = difference.below(offset)
    program = left.program if isinstance(left, Index) else right.program
    return None if box is None else Mask(program, box)


def _equal(left: Any, right: Any) -> Mask | None:
    low = _less(left, right, 1)
    high = _less(right, left, 1)
    return None if low is None or high is None else Mask(low.program, low.box.both(high.box))


def _not_equal(left: Any, right: Any) -> Mask | None:
    equal = _equal(left, right)
    box = None if equal is None else equal.box.inverted()
    return None if equal is None or box is None else Mask(equal.program, box)


_INDEX_RULES: Mapping[str, Callable[[Any, Any], Value | None]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "floordiv": _with_number(Affine.divided),
    "mod": _with_number(Affine.remainder),
    "quotient": _with_number(Affine.divided),
    "remainder": _with_number(Affine.remainder),
    "minimum": _with_number(Affine.at_most, is_symmetric=True),
    "maximum": _with_number(Affine.at_least, is_symmetric=True),
    "lt": lambda left, right: _less(left, right, 0),
    "le": lambda left, right: _less(left, right, 1),
    "gt": lambda left, right: _less(right, left, 0),
    "ge": lambda left, right: _less(right, left, 1),
    "eq": _equal,
    "ne": _not_equal,
}


# -- masks ---------------------------------------------------------------------------------------


def _masks(op: str, left: Any, right: Any) -> Mask | None:
    if not isinstance(left, Mask) or not isinstance(right, Mask):
        mask, flag = (left, right) if isinstance(left, Mask) else (right, left)
        if not isinstance(flag, bool | Int1) or op not in ("and", "or"):
            return None
        if bool(flag) is (op == "and"):
            return mask
        box = type(mask.box).whole(mask.shape) if flag else type(mask.box).empty(mask.shape)
        return Mask(mask.program, box)
    if op in ("and", "mul"):
        return Mask(left.program, left.box.both(right.box))
    if op == "or":
        box = left.box.either(right.box)
        return None if box is None else Mask(left.program, box)
    return None


# -- addresses -----------------------------------------------------------------------------------


def _pointers(op: str, left: Any, right: Any) -> Pointers | None:
    if op == "add" and isinstance(right, Pointers):
        left, right = right, left
    if op not in ("add", "sub") or not isinstance(left, Pointers) or not _is_integer(right):
        return None
    step = left.element.step if op == "add" else -left.element.step
    if isinstance(right, Index):
        affine = left.affine.plus(right.affine.scaled(step))
    else:
        affine = left.affine.shifted(int(right) * step)
    if not _fits(affine, INT64_LIMIT):
        return None
    return Pointers(left.program, affine, left.element, left.offsets)
