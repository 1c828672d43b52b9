"""Softmax inside a page."""

from tilewright.attention.cache.op import CacheOp, cache_op
from tilewright.attention.ops import page_axis

__all__ = ("CumSum", "Softmax")


class _InsidePage(CacheOp):
    """Along rows unless it is told otherwise: there is one page."""

    def __init__(self, dim: int = 1, **attributes: object) -> None:
        super().__init__(dim=dim, **attributes)


Softmax = cache_op(__name__, page_axis.Softmax, _InsidePage)
CumSum = cache_op(__name__, page_axis.CumSum, _InsidePage)
