"""A mask by position."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import layout

__all__ = ("MaskSlice",)

MaskSlice = cache_op(__name__, layout.MaskSlice)
