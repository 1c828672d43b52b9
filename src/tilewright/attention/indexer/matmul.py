"""Products of values."""

from typing import Any

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.op import op_class, vOp
from tilewright.attention.abs.value import Value
from tilewright.attention.ops import linear

__all__ = ("GeMM", "GeMV")

GeMM = op_class(__name__, linear.GeMM)


class GeMV(vOp):
    """Dot product: x [1, 1, D], y [S, 1, D] -> [S, 1, 1]. `GeMM` does all that and more."""

    definition = linear.GeMM

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        operands = self.bind(args, kwargs)
        for name, operand in zip("xy", operands, strict=False):
            if isinstance(operand, Value) and operand.shape[1] != 1:
                fix = "use GeMM, which takes any number of rows"
                raise operand.trace.located(
                    self._error(f"operand {name} {operand.node.type}", "one row", fix)
                )
        return super().profile(*operands, ctx=ctx)
