"""Rows and columns exchanged."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import layout

__all__ = ("Transpose",)

Transpose = op_class(__name__, layout.Transpose)
