"""Products inside a page."""

from collections.abc import Iterable

from tilewright.attention.cache.op import CacheOp, cache_op
from tilewright.attention.graph import Op
from tilewright.attention.ops import linear

__all__ = ("GeMM", "Kron")

GeMM = cache_op(__name__, linear.GeMM)


class Kron(CacheOp):
    __doc__ = linear.Kron.__doc__

    definition = linear.Kron

    def build(self, dim: int | Iterable[int] = (1, 2)) -> Op | None:
        return super().build(tuple(dim) if isinstance(dim, Iterable) else (dim,))
