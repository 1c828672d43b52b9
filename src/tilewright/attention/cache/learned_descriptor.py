"""Learned descriptors of a page."""

from typing import Any

from tilewright.attention.abs.parameter import Parameter
from tilewright.attention.abs.trace import Trace
from tilewright.attention.abs.value import Value
from tilewright.attention.cache.op import CacheOp
from tilewright.attention.graph import Op
from tilewright.attention.ops import linear

__all__ = ("LearnedDescriptor",)


class LearnedDescriptor(CacheOp):
    """``LearnedDescriptor(Wt, Wk, H, m, r)``: ``g[h, m, :] = (Wt[h]^T X) Wk[h]``, as [H*m, r]."""

    definition = linear.LearnedDescriptor

    def build(self, Wt: Parameter, Wk: Parameter, H: int, m: int, r: int) -> Op | None:  # noqa: N803  # names users know
        for name, weights in (("Wt", Wt), ("Wk", Wk)):
            if not isinstance(weights, Parameter):
                found = f"{name} of type {type(weights).__name__}"
                raise self._error(found, "a Parameter", "wrap it")
        return super().build(H, m, r)

    def lower(self, trace: Trace, *operands: Any) -> Value:
        return super().lower(trace, *operands, self.Wt, self.Wk)

    def _split(self, args: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], Any]:
        return (args[:1], args[1]) if output is None and len(args) == 2 else (args, output)
