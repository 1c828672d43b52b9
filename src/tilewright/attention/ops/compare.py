"""Comparisons: as bools, and as additive masks."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.example import CENTROIDS, QUERY, Example
from tilewright.attention.ops.rule import broadcast, need_number


@dataclass(frozen=True, slots=True)
class Comparison(Op):
    """Whether a relation holds, element by element: bool. NaN compares as IEEE says."""

    operands: ClassVar[tuple[str, ...]] = ("x", "y")
    result: ClassVar[DType] = DType.BOOL

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        for operand, value in zip(self.operands, inputs, strict=True):
            need_number(self, operand, value)
        return broadcast(self, inputs, self.result)


@dataclass(frozen=True, slots=True)
class Equal(Comparison):
    """Whether x == y."""


@dataclass(frozen=True, slots=True)
class NotEqual(Comparison):
    """Whether x != y."""


@dataclass(frozen=True, slots=True)
class Greater(Comparison):
    """Whether x > y."""


@dataclass(frozen=True, slots=True)
class GreaterEqual(Comparison):
    """Whether x >= y."""


@dataclass(frozen=True, slots=True)
class Less(Comparison):
    """Whether x < y."""


@dataclass(frozen=True, slots=True)
class LessEqual(Comparison):
    """Whether x <= y."""


@dataclass(frozen=True, slots=True)
class AdditiveMask(Comparison):
    """0 where the relation holds, else exactly -1e30 (rounded to float32)."""

    result: ClassVar[DType] = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class WhereEqual(AdditiveMask):
    """0 where x == y, else -1e30."""


@dataclass(frozen=True, slots=True)
class WhereNotEqual(AdditiveMask):
    """0 where x != y, else -1e30."""


@dataclass(frozen=True, slots=True)
class WhereGreater(AdditiveMask):
    """0 where x > y, else -1e30."""


@dataclass(frozen=True, slots=True)
class WhereGreaterEqual(AdditiveMask):
    """0 where x >= y, else -1e30."""


@dataclass(frozen=True, slots=True)
class WhereLess(AdditiveMask):
    """0 where x < y, else -1e30."""


@dataclass(frozen=True, slots=True)
class WhereLessEqual(AdditiveMask):
    """0 where x <= y, else -1e30."""


EXAMPLES = tuple(
    Example(op(), (QUERY, CENTROIDS))
    for op in (
        *(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual),
        *(WhereEqual, WhereNotEqual, WhereGreater, WhereGreaterEqual, WhereLess, WhereLessEqual),
    )
)
