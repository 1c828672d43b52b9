"""Parts put together and cut out."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import layout

__all__ = (
    "Concat",
    "Slice",
)

Slice = cache_op(__name__, layout.Slice)
Concat = cache_op(__name__, layout.Concat)
