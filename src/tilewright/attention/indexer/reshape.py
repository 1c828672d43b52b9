"""Other inner sizes for the same elements."""

from tilewright.attention.abs.op import vOp
from tilewright.attention.ops import layout

__all__ = ("Reshape",)


class Reshape(vOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements; RAGGED or BATCHED."""

    definition = layout.Reshape

    def __init__(self, batch_dim: int, x2: int, y2: int) -> None:
        super().__init__(x2, y2)
        if batch_dim != -1:
            raise self._error(f"batch_dim={batch_dim}", "-1", "the page axis is kept")
