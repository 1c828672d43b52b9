"""Comparisons: as bools, and as additive masks."""

from tilewright.attention.graph import DType
from tilewright.attention.ops.rule import TwoValues


class Comparison(TwoValues):
    """Whether a relation holds, element by element: bool. NaN compares as IEEE says."""

    result = DType.BOOL


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


OPS = (
    *(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual),
    *(WhereEqual, WhereNotEqual, WhereGreater, WhereGreaterEqual, WhereLess, WhereLessEqual),
)
