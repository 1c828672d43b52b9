"""The best that pages can do: they are ranked by the attention mass that they truly have.

p_g(i) = softmax over all cached tokens of scale q_g . k_i, score(P) = mean_g of the sum of p_g(i)
over the tokens of P. The rule reads every key, so it shows what a rule could reach and saves
nothing.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA
from tilewright.attention.graph import Span

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class TrueMass(Scored):
    """score(P) = mean_g of the true mass of P; the scale is 1 / sqrt(width) unless given."""

    paper = "none: the upper end of every comparison"
    group = "mean of masses"
    scale: float | None = None

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else self.scale
        logits = (cache[self.keys] @ q.T) * scale
        weight = (logits - logits.max(1).max(0, span=Span.ALL)).exp().sum(1)
        return (weight / weight.sum(0, span=Span.ALL)).mean(2)


@register("oracle")
class Oracle(TrueMass, ScoredFlow):
    """score(P) = mean_g of the true mass of P."""


@register("oracle_mla")
class OracleMLA(TrueMass, ScoredFlowMLA):
    """score(P) = mean_h of the true mass of P.

    The absorbed query makes the dot product the whole logit; its scale belongs to the model:
    1 / sqrt(width of the unabsorbed head), 1 / sqrt(latent width) by default.
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale
