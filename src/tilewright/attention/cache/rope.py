"""Rotary position embedding."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import rope

__all__ = ("Rope",)

Rope = cache_op(__name__, rope.Rope)
