"""Parts put together and cut out."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import layout

__all__ = (
    "Concat",
    "Slice",
)

Slice = op_class(__name__, layout.Slice)
Concat = op_class(__name__, layout.Concat)
