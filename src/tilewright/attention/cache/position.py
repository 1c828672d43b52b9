"""Position and length of the page as values."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import position

__all__ = (
    "HeadIndex",
    "LayerIndex",
    "PageIndex",
    "TokenCount",
    "TokenPosition",
    "TokenValid",
)

PageIndex = cache_op(__name__, position.PageIndex)
TokenCount = cache_op(__name__, position.TokenCount)
TokenPosition = cache_op(__name__, position.TokenPosition)
TokenValid = cache_op(__name__, position.TokenValid)
LayerIndex = cache_op(__name__, position.LayerIndex)
HeadIndex = cache_op(__name__, position.HeadIndex)
