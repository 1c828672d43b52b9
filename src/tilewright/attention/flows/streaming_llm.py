"""Attention sinks and a recent window; no key or latent is looked at.

The reserved first pages are the sinks. Of the others the plan's number of latest pages is read:
score(P) = position of P.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA
from tilewright.attention.indexer import PageIndex

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class Latest(Scored):
    """A flow that reads the latest pages."""

    paper = "Efficient Streaming Language Models with Attention Sinks (2309.17453)"
    group = "none: the query does not matter"

    def __init__(self) -> None:
        super().__init__()
        self.position = PageIndex()

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        position: Value = self.position(ctx=ctx)
        return position


@register("streaming_llm")
class StreamingLLM(Latest, ScoredFlow):
    """score(P) = position of P."""


@register("streaming_llm_mla")
class StreamingLLMMLA(Latest, ScoredFlowMLA):
    """score(P) = position of P."""
