"""Comparisons: as bools, and as additive masks."""

from tilewright.attention.graph import DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.example import CENTROIDS, QUERY, Example
from tilewright.attention.ops.rule import broadcast, need_number


class Comparison(Op):
    """Whether a relation holds, element by element: bool. NaN compares as IEEE says."""

    operands = ("x", "y")
    result = DType.BOOL

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        for operand, value in zip(self.operands, inputs, strict=True):
            need_number(self, operand, value)
        return broadcast(self, inputs, self.result)


class Equal(Comparison):
    """Whether x == y."""


class NotEqual(Comparison):
    """Whether x != y."""


class Greater(Comparison):
    """Whether x > y."""


class GreaterEqual(Comparison):
    """Whether x >= y."""


class Less(Comparison):
    """Whether x < y."""


class LessEqual(Comparison):
    """Whether x <= y."""


class AdditiveMask(Comparison):
    """0 where the relation holds, else exactly -1e30 (rounded to float32)."""

    result = DType.FLOAT32


class WhereEqual(AdditiveMask):
    """0 where x == y, else -1e30."""


class WhereNotEqual(AdditiveMask):
    """0 where x != y, else -1e30."""


class WhereGreater(AdditiveMask):
    """0 where x > y, else -1e30."""


class WhereGreaterEqual(AdditiveMask):
    """0 where x >= y, else -1e30."""


class WhereLess(AdditiveMask):
    """0 where x < y, else -1e30."""


class WhereLessEqual(AdditiveMask):
    """0 where x <= y, else -1e30."""


EXAMPLES = tuple(
    Example(op(), (QUERY, CENTROIDS))
    for op in (
        *(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual),
        *(WhereEqual, WhereNotEqual, WhereGreater, WhereGreaterEqual, WhereLess, WhereLessEqual),
    )
)
