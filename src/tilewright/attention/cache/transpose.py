"""Rows and columns exchanged."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import layout

__all__ = ("Transpose",)

Transpose = cache_op(__name__, layout.Transpose)
