"""The best that pages of latents can do: they are ranked by the mass that they truly have.

p_h(i) = softmax over all cached tokens of scale q_h . latent_i, score(P) = mean_h of the sum of
p_h(i) over the tokens of P. The absorbed query makes the dot product the whole logit; its scale
belongs to the model: 1 / sqrt(width of the unabsorbed head), 1 / sqrt(latent width) by default.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA
from tilewright.attention.graph import Span

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("OracleMLA",)


@register("oracle_mla")
class OracleMLA(ScoredFlowMLA):
    """score(P) = mean_h of the true mass of P."""

    paper = "none: the upper end of every comparison"
    group = "mean of masses"

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else self.scale
        logits = (cache["latent"] @ q.T) * scale
        weight = (logits - logits.max(1).max(0, span=Span.ALL)).exp().sum(1)
        return (weight / weight.sum(0, span=Span.ALL)).mean(2)
