"""A field set to one number."""

from numbers import Real
from typing import Any

from tilewright.attention.abs.field import FieldValue
from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import DType

__all__ = ("Fill",)


class Fill(vOp):
    """Sets the whole field of the page to ``alpha``; of a state, its starting value."""

    def build(self, alpha: float = 0.0) -> None:
        if isinstance(alpha, bool) or not isinstance(alpha, Real):
            raise self._error(f"alpha={alpha!r}", "a number", "change alpha")

    def profile(self, x: Any, loc: object = None, ctx: object = None) -> FieldValue:  # type: ignore[override]
        del loc, ctx
        if not isinstance(x, FieldValue):
            found = f"an operand of type {type(x).__name__}"
            raise self._error(found, "a cache field", 'pass cache["name"]')
        x.trace.write_field(x.field, x.trace.constant(float(self.alpha), DType.FLOAT32))
        return x
