"""Other inner sizes for the same elements."""

from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import Op
from tilewright.attention.ops import layout

__all__ = ("Reshape",)


class Reshape(vOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements; RAGGED or BATCHED."""

    definition = layout.Reshape

    def build(self, batch_dim: int, x2: int, y2: int) -> Op | None:
        if batch_dim != -1:
            raise self._error(f"batch_dim={batch_dim!r}", "-1", "the page axis is kept")
        return super().build(x2, y2)
