"""Softmax and cumulative sums inside a page: along rows by default, as there is one page."""

from tilewright.attention.cache.op import CacheOp
from tilewright.attention.graph import Op, Span
from tilewright.attention.ops import page_axis

__all__ = ("CumSum", "Softmax")


class Softmax(CacheOp):
    __doc__ = page_axis.Softmax.__doc__

    definition = page_axis.Softmax

    def build(self, dim: int = 1, scale: float = 1.0, span: str = Span.MIDDLE) -> Op | None:
        return super().build(dim, scale, span)


class CumSum(CacheOp):
    __doc__ = page_axis.CumSum.__doc__

    definition = page_axis.CumSum

    def build(self, dim: int = 1, reverse: bool = False, span: str = Span.MIDDLE) -> Op | None:
        return super().build(dim, reverse, span)
