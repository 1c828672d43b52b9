"""Rotary position embedding."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.example import QUERY, Example, row
from tilewright.attention.ops.rule import broadcast, need_float, need_number

__all__ = ("EXAMPLES", "Rope")


@dataclass(frozen=True, slots=True)
class Rope(Op):
    """Rotates the columns of x: pair i by the angle ``position * base**(-2 i / c)``.

    x [., r, c] with an even c; position [., r or 1, 1]. Pairs are (i, i + c/2), or (2i, 2i + 1)
    with ``interleaved``. A negative position undoes a rotation.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "position")
    base: float = 10000.0
    interleaved: bool = False

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        x, position = inputs
        need_float(self, "x", x)
        need_number(self, "position", position)
        if x.shape[1] % 2:
            raise self.refuse("x", x, "an even number of columns", "rotate a slice of them")
        if position.shape[1] != 1 or position.shape[0] not in (1, x.shape[0]):
            expected = f"inner shape ({x.shape[0]} or 1, 1)"
            raise self.refuse("position", position, expected, "one position for each row")
        return broadcast(self, inputs, DType.FLOAT32)


EXAMPLES = (Example(Rope(), (QUERY, row(1, 1, DType.INT32))),)
