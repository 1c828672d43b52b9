"""The rules of types that ops share: broadcasting, formats, element types."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from tilewright.attention.graph import FORMAT, DType, Leading, Op, Scope, Side, Types, ValueType

INDEXER_ONLY = frozenset({Side.INDEXER})
MASKED = -1e30
"""What a mask adds to a score that must not win: finite, so that no NaN can come of it."""


def need_rank_two(op: Op, operand: str, value: ValueType) -> None:
    """Refuse an operand with other than two inner axes."""
    if len(value.shape) != 2:
        fix = "use GeMM or FactorScore, which take weights with an axis of heads"
        raise op.refuse(operand, value, "a value of rank 3", fix)


def need_number(op: Op, operand: str, value: ValueType) -> None:
    """Refuse an operand of bools."""
    need_rank_two(op, operand, value)
    if value.dtype is DType.BOOL:
        fix = "use Select(mask, x, y), or Cast it to float32"
        raise op.refuse(operand, value, "numbers", fix)


def need_float(op: Op, operand: str, value: ValueType) -> None:
    """Refuse an operand whose elements are no floating-point numbers."""
    need_rank_two(op, operand, value)
    if not value.dtype.is_float:
        raise op.refuse(operand, value, "floating-point numbers", "Cast it to float32 first")


def need_integers(op: Op, operand: str, value: ValueType) -> None:
    """Refuse an operand whose elements are no integers."""
    if not value.dtype.is_integer:
        raise op.refuse(operand, value, "integers", "Cast it to int32 first")


def need_format(op: Op, operand: str, value: ValueType, *formats: FORMAT) -> None:
    """Refuse an operand in a format that is not one of ``formats``."""
    if value.format not in formats:
        expected = f"a value in format {' or '.join(item.name for item in formats)}"
        fix = "reduce something per page first"
        if value.format is FORMAT.PAGED:
            fix = "lift the field with Load(), or with any element-wise op"
        raise op.refuse(operand, value, expected, fix)


def need_shape(op: Op, operand: str, value: ValueType, shape: tuple[int, ...], fix: str) -> None:
    """Refuse an operand of another inner shape."""
    if value.shape != shape:
        raise op.refuse(operand, value, f"inner shape {shape}", fix)


def number_type(inputs: Types) -> DType:
    """Return int32 if all operands are integers, else float32."""
    return DType.INT32 if all(value.dtype.is_integer for value in inputs) else DType.FLOAT32


def lifted(value: ValueType, dtype: DType | None = None) -> ValueType:
    """The type of a result per entry of ``value``: BATCHED stays, all else becomes RAGGED."""
    per_row = value.format in (FORMAT.BATCHED, FORMAT.PARAMETER, FORMAT.SLOTTED)
    leading = Leading.ONE if value.leading is Leading.NONE else value.leading
    return replace(
        value,
        format=FORMAT.BATCHED if per_row else FORMAT.RAGGED,
        leading=leading,
        dtype=dtype or value.dtype.computed,
    )


def broadcast(op: Op, inputs: Types, dtype: DType, *, names: tuple[str, ...] = ()) -> ValueType:
    """Inner axes are equal or 1; a value per row meets every page of its row."""
    shape = [1, 1]
    for index, value in enumerate(inputs):
        for axis in (0, 1):
            size = value.shape[axis]
            if size not in (1, shape[axis]) and shape[axis] != 1:
                operand = (names or op.operands)[index]
                found = f"{value}, whose axis {axis + 1} has {size} entries"
                expected = f"1 or {shape[axis]} entries, as the other operand has"
                raise op.refuse(operand, found, expected, "reduce, reshape or transpose one")
            shape[axis] = max(shape[axis], size)
    parts = [lifted(value) for value in inputs]
    tokens = sorted({axis for part in parts for axis in part.token_axes})
    ragged = any(part.format is FORMAT.RAGGED for part in parts)
    pages = any(part.leading is Leading.PAGES for part in parts)
    return ValueType(
        FORMAT.RAGGED if ragged else FORMAT.BATCHED,
        Leading.PAGES if pages else Leading.ONE,
        (shape[0], shape[1]),
        dtype,
        tuple(tokens),
    )


Need = Callable[[Op, str, ValueType], None]


class OneValue(Op):
    """An op on one value that keeps its shape."""

    operands = ("x",)
    need: ClassVar[Need] = need_number
    """The rule that elements of the operand keep."""
    formats: ClassVar[tuple[FORMAT, ...]] = tuple(FORMAT)
    """Formats that the operand may have."""
    result: ClassVar[DType | None] = DType.FLOAT32
    """The element type of the result; None: that of the operand, computed."""

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        self.need("x", x)
        need_format(self, "x", x, *self.formats)
        return lifted(x, self.result)


class TwoValues(Op):
    """An op on two values that broadcast, element by element."""

    operands = ("x", "y")
    need: ClassVar[Need] = need_number
    """The rule that elements of both operands keep."""
    result: ClassVar[DType | None] = None
    """The element type of the result; None: int32 of integers, else float32."""

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        for operand, value in zip(self.operands, inputs, strict=True):
            self.need(operand, value)
        return broadcast(self, inputs, self.result or number_type(inputs))
