"""True attention weights as scores: what a rule could reach, at the cost of reading every key."""

import math
from numbers import Real
from typing import Any

from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.op import trace_of, vOp
from tilewright.attention.abs.value import Value
from tilewright.attention.graph import Span
from tilewright.attention.indexer.select import topK


class GTGroupScore(vOp):
    """``GTGroupScore()(q, cache["k"])`` -> [S, 1, 1]: the largest group weight in each page.

    The weight of a token is the sum over the query heads of the group of its softmax weight over
    all tokens of the row. ``scale`` of the logits is 1/sqrt(width of a key) by default.
    """

    def build(self, *, scale: float | None = None) -> None:
        if scale is not None and (isinstance(scale, bool) or not isinstance(scale, Real)):
            raise self._error(f"scale={scale!r}", "a number", "change scale")

    def profile(self, q: Any, k: Any, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        trace = trace_of("GTGroupScore", (q, k), ctx)
        for name, operand in (("q", q), ("k", k)):
            if not isinstance(operand, Value):
                found = f"operand {name} of type {type(operand).__name__}"
                raise trace.located(self._error(found, "a value of the flow", 'pass q, cache["k"]'))
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else float(self.scale)
        logits = (k @ q.T) * scale
        weights = (logits - logits.amax(1).amax(0, span=Span.ALL)).exp()
        total = weights.sum(1).sum(0, span=Span.ALL)
        score: Value = (weights / total).sum(2).amax(1)
        return score


class GTTopK(topK):
    """`topK` of ground-truth scores: ``GTTopK()(score, o, ctx=ctx)`` ends the flow."""
