"""Rotary position embedding."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import rope

__all__ = ("Rope",)

Rope = op_class(__name__, rope.Rope)
