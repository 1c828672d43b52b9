"""The best that pages can do: they are ranked by the attention mass that they truly have.

p_g(i) = softmax over all cached tokens of q_g . k_i / sqrt(D),
score(P) = mean_g of the sum of p_g(i) over the tokens of P. It reads every key, so it shows what a
rule could reach and saves nothing.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("Oracle",)


@register("oracle")
class Oracle(ScoredFlow):
    """score(P) = mean_g of the true mass of P."""

    paper = "none: the upper end of every comparison"
    group = "mean of masses"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        logits = (cache["k"] @ q.T) * (1.0 / math.sqrt(q.shape[2]))
        top = logits.max(1).max(0, span="all")
        weight = (logits - top).exp().sum(1)
        return (weight / weight.sum(0, span="all")).mean(2)
