"""Values of a flow while it is traced, with infix and method forms of the ops."""

from collections.abc import Callable
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


def _infix(
    op: Op, *, of_bools: Op | None = None, is_reflected: bool = False
) -> Callable[["Value", Operand], "Value"]:
    """Return a method that applies an op to two operands, or another one if the first has bools."""

    def apply(self: "Value", other: Operand) -> "Value":
        chosen = op if of_bools is None or self.dtype is not DType.BOOL else of_bools
        return self._apply(chosen, self, other)

    def apply_reflected(self: "Value", other: Operand) -> "Value":
        return self._apply(op, other, self)

    return apply_reflected if is_reflected else apply


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

    __add__ = _infix(binary.Add())
    __radd__ = _infix(binary.Add(), is_reflected=True)
    __sub__ = _infix(binary.Add(1.0, -1.0))
    __rsub__ = _infix(binary.Add(1.0, -1.0), is_reflected=True)
    __mul__ = _infix(binary.Multiply())
    __rmul__ = _infix(binary.Multiply(), is_reflected=True)
    __truediv__ = _infix(binary.Divide())
    __rtruediv__ = _infix(binary.Divide(), is_reflected=True)
    __floordiv__ = _infix(binary.FloorDivide())
    __mod__ = _infix(binary.Remainder())
    __pow__ = _infix(binary.Pow())
    __rpow__ = _infix(binary.Pow(), is_reflected=True)
    __lshift__ = _infix(binary.ShiftLeft())
    __rshift__ = _infix(binary.ShiftRight())

    def __neg__(self) -> "Value":
        return self * -1

    def __abs__(self) -> "Value":
        return self._apply(unary.Abs(), self)

    def __matmul__(self, other: Operand) -> "Value":
        """``out[s] = self[s] @ other[s]``, the product that NumPy and torch write so."""
        return self.matmul(other)

    # -- logic: of selections and masks, or of the bits of integers

    __and__ = _infix(binary.BitAnd(), of_bools=select.Intersection())
    __or__ = _infix(binary.BitOr(), of_bools=select.Union())
    __xor__ = _infix(binary.BitXor())

    def __invert__(self) -> "Value":
        is_bool = self.dtype is DType.BOOL
        return self._apply(select.Complement() if is_bool else unary.BitNot(), self)

    # -- comparisons

    __eq__ = _infix(compare.Equal())  # type: ignore[assignment]  # gives a value
    __ne__ = _infix(compare.NotEqual())  # type: ignore[assignment]
    __gt__ = _infix(compare.Greater())
    __ge__ = _infix(compare.GreaterEqual())
    __lt__ = _infix(compare.Less())
    __le__ = _infix(compare.LessEqual())

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

    def _apply(self, op: Op, *operands: Operand) -> "Value":
        return lower(op, *operands, trace=self.trace)
