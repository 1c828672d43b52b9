"""Values of a flow while it is traced, with infix and method forms of the ops."""

from typing import Any

from tilewright.attention.abs.author import make_op
from tilewright.attention.abs.tensor import vTensor
from tilewright.attention.abs.tensor_method import TensorMethods
from tilewright.attention.abs.trace import Trace
from tilewright.attention.graph import DType, Node, Op, Span
from tilewright.attention.ops import binary, compare, layout, unary
from tilewright.attention.ops import selection as select

Operand = Any
"""A value, a number or a Parameter; what else comes is refused with its name."""


def lower(op: Op, *operands: Operand, trace: Trace, by: object = None) -> "Value":
    """Apply an op; ``by`` is the op object that was called, if there is one."""
    return Value(trace, trace.apply(op, *operands, by=by))


class Value(TensorMethods["Value"], vTensor):
    """One value for one row. Axis 0 runs over pages, 1 over rows, 2 over columns.

    It has no numbers: a flow is traced once and then runs on all rows. What would need numbers
    (``if``, ``float()``, a torch or NumPy function) is refused.
    """

    def __init__(self, trace: Trace, node: Node) -> None:
        shape = (0, *node.type.shape)
        super().__init__(shape, node.type.dtype, None, node.type.format, trace.id_of(node))
        self.trace = trace
        self.node = node

    # -- arithmetic

    def __add__(self, other: Operand) -> "Value":
        return self._apply(binary.Add(), self, other)

    def __radd__(self, other: Operand) -> "Value":
        return self._apply(binary.Add(), other, self)

    def __sub__(self, other: Operand) -> "Value":
        return self._apply(binary.Add(1.0, -1.0), self, other)

    def __rsub__(self, other: Operand) -> "Value":
        return self._apply(binary.Add(1.0, -1.0), other, self)

    def __mul__(self, other: Operand) -> "Value":
        return self._apply(binary.Multiply(), self, other)

    def __rmul__(self, other: Operand) -> "Value":
        return self._apply(binary.Multiply(), other, self)

    def __truediv__(self, other: Operand) -> "Value":
        return self._apply(binary.Divide(), self, other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self._apply(binary.Divide(), other, self)

    def __floordiv__(self, other: Operand) -> "Value":
        return self._apply(binary.FloorDivide(), self, other)

    def __mod__(self, other: Operand) -> "Value":
        return self._apply(binary.Remainder(), self, other)

    def __pow__(self, other: Operand) -> "Value":
        return self._apply(binary.Pow(), self, other)

    def __rpow__(self, other: Operand) -> "Value":
        return self._apply(binary.Pow(), other, self)

    def __neg__(self) -> "Value":
        return self * -1

    def __abs__(self) -> "Value":
        return self._apply(unary.Abs(), self)

    def __matmul__(self, other: Operand) -> "Value":
        """``out[s] = self[s] @ other[s]``, the product that NumPy and torch write so."""
        return self.matmul(other)

    def __lshift__(self, other: Operand) -> "Value":
        return self._apply(binary.ShiftLeft(), self, other)

    def __rshift__(self, other: Operand) -> "Value":
        return self._apply(binary.ShiftRight(), self, other)

    # -- logic: of selections and masks, or of the bits of integers

    def __and__(self, other: Operand) -> "Value":
        return self._apply(select.Intersection() if self._is_bool else binary.BitAnd(), self, other)

    def __or__(self, other: Operand) -> "Value":
        return self._apply(select.Union() if self._is_bool else binary.BitOr(), self, other)

    def __xor__(self, other: Operand) -> "Value":
        return self._apply(binary.BitXor(), self, other)

    def __invert__(self) -> "Value":
        return self._apply(select.Complement() if self._is_bool else unary.BitNot(), self)

    # -- comparisons

    def __eq__(self, other: object) -> "Value":  # type: ignore[override]
        return self._apply(compare.Equal(), self, other)

    def __ne__(self, other: object) -> "Value":  # type: ignore[override]
        return self._apply(compare.NotEqual(), self, other)

    def __gt__(self, other: Operand) -> "Value":
        return self._apply(compare.Greater(), self, other)

    def __ge__(self, other: Operand) -> "Value":
        return self._apply(compare.GreaterEqual(), self, other)

    def __lt__(self, other: Operand) -> "Value":
        return self._apply(compare.Less(), self, other)

    def __le__(self, other: Operand) -> "Value":
        return self._apply(compare.LessEqual(), self, other)

    __hash__ = object.__hash__

    # -- shape

    def __getitem__(self, key: object) -> "Value":
        """``x[:, 0:8, 64:]``: slices of rows and columns; the page axis stays whole."""
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) > 3 or any(
            not isinstance(part, slice) or part.step not in (None, 1) for part in parts
        ):
            self._refuse(f"the index {key!r}", "slices with step 1, as in x[:, 0:8, :]")
        if parts and parts[0] != slice(None):
            self._refuse(f"the index {parts[0]!r} of the page axis", "a colon")
        result = self
        for dim, part in enumerate(parts[1:], start=1):
            start, stop, _ = part.indices(self.shape[dim])
            if (start, stop) != (0, self.shape[dim]):
                result = self._apply(make_op(layout.Slice, start, stop, dim), result)
        return result

    # -- selections

    def topk(self, k: int | None = None, *, per_head: bool = False) -> "Value":
        return self._apply(make_op(select.TopK, k, per_head), self)

    def top_p(
        self,
        p: float,
        *,
        min_pages: int = 0,
        max_pages: int | None = None,
        span: str = Span.MIDDLE,
        per_head: bool = False,
    ) -> "Value":
        return self._apply(make_op(select.TopP, p, min_pages, max_pages, span, per_head), self)

    def threshold(
        self,
        value: float,
        *,
        min_pages: int = 0,
        max_pages: int | None = None,
        per_head: bool = False,
    ) -> "Value":
        return self._apply(make_op(select.Threshold, value, min_pages, max_pages, per_head), self)

    @property
    def _is_bool(self) -> bool:
        return self.dtype is DType.BOOL

    def _apply(self, op: Op, *operands: Operand) -> "Value":
        return lower(op, *operands, trace=self.trace)
