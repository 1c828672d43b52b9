"""Choice by a mask and by index."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import choose

__all__ = (
    "Gather",
    "Select",
)

Select = op_class(__name__, choose.Select)
Gather = op_class(__name__, choose.Gather)
