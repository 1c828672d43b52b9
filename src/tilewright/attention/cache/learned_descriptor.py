"""Learned descriptors of a page."""

from typing import Any

from tilewright.attention.abs.parameter import Parameter
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.cache.op import CacheOp
from tilewright.attention.ops import linear

__all__ = ("LearnedDescriptor",)


class LearnedDescriptor(CacheOp):
    """``LearnedDescriptor(Wt, Wk, H, m, r)``: ``g[h, m, :] = (Wt[h]^T X) Wk[h]``, as [H*m, r]."""

    definition = linear.LearnedDescriptor

    def __init__(self, Wt: Parameter, Wk: Parameter, H: int, m: int, r: int) -> None:  # noqa: N803  # names users know
        super().__init__(H, m, r)
        self.weights = (Wt, Wk)

    def lower(self, trace: Trace, *operands: Any) -> Value:
        return super().lower(trace, *operands, *self.weights)

    def _split(self, args: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], Any]:
        return (args[:1], args[1]) if output is None and len(args) == 2 else (args, output)
