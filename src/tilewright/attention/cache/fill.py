"""A field set to one number."""

from typing import Any

from tilewright.attention.abs.field import FieldValue
from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import DType

__all__ = ("Fill",)


class Fill(vOp):
    """Sets the whole field of the page to ``alpha``; of a state, its starting value."""

    def __init__(self, alpha: float = 0.0) -> None:
        super().__init__()
        self.alpha = float(alpha)

    def profile(self, x: Any, *, loc: object = None, ctx: object = None) -> FieldValue:  # type: ignore[override]
        del loc, ctx
        if not isinstance(x, FieldValue):
            found = f"an operand of type {type(x).__name__}"
            raise self._error(found, "a cache field", 'pass cache["name"]')
        x.trace.write_field(x.field, x.trace.constant(self.alpha, DType.FLOAT32))
        return x
