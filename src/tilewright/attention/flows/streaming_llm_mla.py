"""Attention sinks and a recent window over latents; no latent is looked at.

score(P) = position of P, as in `streaming_llm`.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA
from tilewright.attention.indexer import PageIndex

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("StreamingLLMMLA",)


@register("streaming_llm_mla")
class StreamingLLMMLA(ScoredFlowMLA):
    """score(P) = position of P."""

    paper = "Efficient Streaming Language Models with Attention Sinks (2309.17453)"
    group = "none: the query does not matter"

    def __init__(self) -> None:
        super().__init__()
        self.position = PageIndex()

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        position: Value = self.position(ctx=ctx)
        return position
