"""Kronecker products."""

from collections.abc import Iterable

from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import Op
from tilewright.attention.ops import linear

__all__ = ("Kron",)


class Kron(vOp):
    __doc__ = linear.Kron.__doc__

    definition = linear.Kron

    def build(self, dim: int | Iterable[int] = (1, 2)) -> Op | None:
        return super().build(tuple(dim) if isinstance(dim, Iterable) else (dim,))
