"""Other inner sizes for the same elements."""

from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Operand, Value, lower
from tilewright.attention.cache.op import CacheOp
from tilewright.attention.graph import FORMAT, Op
from tilewright.attention.ops import layout
from tilewright.attention.ops.unary import Cast

__all__ = ("Reshape",)


class Reshape(CacheOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements. Takes fields too."""

    definition = layout.Reshape

    def build(self, batch_dim: int, x2: int, y2: int) -> Op | None:
        if batch_dim != -1:
            raise self._error(f"batch_dim={batch_dim!r}", "-1", "the page axis is kept")
        return super().build(x2, y2)

    def lower(self, trace: Trace, *operands: Operand) -> Value:
        lifted = [
            lower(Cast(item.dtype.computed), item, trace=trace)
            if isinstance(item, Value) and item._format is FORMAT.PAGED
            else item
            for item in operands
        ]
        return super().lower(trace, *lifted)
