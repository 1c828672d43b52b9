"""Streaming: attention sinks, which are the reserved first pages, and a window of recent tokens."""

from collections.abc import Collection

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register, vFlow
from tilewright.attention.flows.ready import Ready, Scored, ScoredFlow, ScoredFlowMLA
from tilewright.attention.indexer import HeadIndex, PageIndex, recent

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class Latest(Scored):
    """A flow that reads the latest pages: score(P) = position of P. No key is looked at."""

    paper = "Efficient Streaming Language Models with Attention Sinks (2309.17453)"
    group = "none: the query does not matter"

    def __init__(self) -> None:
        super().__init__()
        self.position = PageIndex()

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.position(ctx=ctx)


@register("streaming_llm")
class StreamingLLM(Latest, ScoredFlow):
    """score(P) = position of P."""


@register("streaming_llm_mla")
class StreamingLLMMLA(Latest, ScoredFlowMLA):
    """score(P) = position of P."""


@register("duo_attention")
class DuoAttention(Ready, vFlow):
    """All pages for retrieval heads, sinks and a window for the others.

    KV heads in ``retrieval_heads`` attend to all pages; the others to the reserved first pages and
    the last ``window_tokens`` tokens, in whole pages. Which heads retrieve is learned in the paper.
    """

    paper = (
        "DuoAttention: Efficient Long-Context LLM Inference with Retrieval and Streaming Heads"
        " (2410.10819)"
    )
    group = "none: the query does not matter"

    def __init__(
        self, retrieval_heads: Collection[int] | None = None, window_tokens: int = 256
    ) -> None:
        super().__init__()
        self.retrieval_heads = retrieval_heads
        self.window_tokens = window_tokens
        self.head = HeadIndex()
        self.position = PageIndex()

    @property
    def weights_label(self) -> str:
        return "every second head" if self.retrieval_heads is None else "given"

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        head = self.head(ctx=ctx)
        retrieves = head % 2 == 0 if self.retrieval_heads is None else head < 0
        for number in sorted(self.retrieval_heads or ()):
            retrieves = retrieves | (head == number)
        window = recent(-(-self.window_tokens // cache["k"].shape[1]))
        o.select(retrieves.where(self.position(ctx=ctx) >= 0, window(ctx=ctx)))
