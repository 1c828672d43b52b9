"""Attention estimated on the query's largest channels, and the mean value for what was left out.

r channels with the largest sum_g |q_gd| give logits
q_g . k_i / sqrt(D |q_g|_r / |q_g|), where |.| are sums of absolute values over all and over the r
channels. Softmax over all tokens gives an estimated mass; score(P) = mean_g of the mass of P. With
a_g = the estimated mass of what is read, the output is a_g attention + (1 - a_g) mean of all values
in complete pages. With pages of one token this is the published rule.
"""

from tilewright.attention.abs import BranchSpec, ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow
from tilewright.attention.graph import Span
from tilewright.attention.indexer import ReservedPages, TokenCount

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("sparq")
class SparQ(ScoredFlow):
    """score(P) = mean_g of the mass of P on r channels; the rest enters as the mean value."""

    paper = "SparQ Attention: Bandwidth-Efficient LLM Inference (2312.04985)"
    group = "mean of masses"

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.channels = channels
        self.reserved = ReservedPages()
        self.tokens = TokenCount()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.page_tokens = block_size
        return {"mean_value": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["mean_value"] = cache["v"].mean(1)

    def masses(self, q: Value, cache: FieldMap) -> Value:
        """[S, 1, H]: the estimated share of each page, for each query head."""
        chosen = abs(q).sum(1).argtop(self.channels)
        strong = q.gather(chosen)
        share = abs(strong).sum(2) / abs(q).sum(2)
        heat = (share * float(q.shape[2])).sqrt()
        logits = (cache["k"].gather(chosen) @ strong.T) / heat.T
        weights = (logits - logits.max(1).max(0, span=Span.ALL)).exp().sum(1)
        return weights / weights.sum(0, span=Span.ALL)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.masses(q, cache).mean(2)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        masses = self.masses(q, cache)
        chosen = masses.mean(2).topk()
        read = (chosen | self.reserved(ctx=ctx)).where(masses, 0.0).sum(0, span=Span.ALL).T
        complete = self.tokens(ctx=ctx) == self.page_tokens
        even = complete.where(0.0 * masses, -1e30)  # every complete page weighs the same
        o.combine(
            [
                BranchSpec(chosen, gate=read),
                BranchSpec(gate=1.0 - read, logits=even, values=cache["mean_value"]),
            ]
        )
