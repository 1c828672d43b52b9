"""A mask by position."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import layout

__all__ = ("MaskSlice",)

MaskSlice = op_class(__name__, layout.MaskSlice)
