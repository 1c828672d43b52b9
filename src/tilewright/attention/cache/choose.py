"""Choice by a mask and by index."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import choose

__all__ = (
    "Gather",
    "Select",
)

Select = cache_op(__name__, choose.Select)
Gather = cache_op(__name__, choose.Gather)
