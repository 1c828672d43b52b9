"""Products inside a page."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import linear

__all__ = ("GeMM", "Kron")

GeMM = cache_op(__name__, linear.GeMM)
Kron = cache_op(__name__, linear.Kron)
