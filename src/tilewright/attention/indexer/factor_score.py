"""Scores from learned descriptors."""

from typing import Any

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.op import vOp
from tilewright.attention.abs.parameter import Parameter
from tilewright.attention.graph import Op
from tilewright.attention.ops import linear

__all__ = ("FactorScore",)


class FactorScore(vOp):
    """``FactorScore(Wq, H, m, r)(q, descriptors)``: ``sum_h max_m <Wq[h]^T q_h, g[h, m]>``."""

    definition = linear.FactorScore

    def build(self, Wq: Parameter, H: int, m: int, r: int) -> Op | None:  # noqa: N803  # names users know
        if not isinstance(Wq, Parameter):
            raise self._error(f"Wq of type {type(Wq).__name__}", "a Parameter", "wrap it")
        return super().build(H, m, r)

    def profile(self, q: Any, descriptors: Any, ctx: ContextBase | None = None) -> Any:  # type: ignore[override]
        return super().profile(q, self.Wq, descriptors, ctx=ctx)
