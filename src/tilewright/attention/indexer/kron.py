"""Kronecker products."""

from collections.abc import Iterable

from tilewright.attention.abs.op import vOp
from tilewright.attention.ops import linear

__all__ = ("Kron",)


class Kron(vOp):
    __doc__ = linear.Kron.__doc__

    definition = linear.Kron

    def __init__(self, dim: int | Iterable[int] = (1, 2)) -> None:
        super().__init__((dim,) if isinstance(dim, int) else tuple(dim))
