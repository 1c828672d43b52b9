"""LServe as a whole: half of the heads stream, the others choose pages every few steps.

KV heads with an odd number read sinks and the last ``window_tokens`` tokens, in whole pages. The
others rank pages as `lserve_sparse_attention` does, and keep a choice for ``every`` steps. Which
heads stream is learned in the paper; here it is their number.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.lserve_sparse_attention import LServeSparseAttention
from tilewright.attention.indexer import HeadIndex, recent
from tilewright.attention.indexer import every as every_steps

__all__ = ("LServe",)


@register("lserve")
class LServe(LServeSparseAttention):
    """Streaming heads, and a reused choice by the sub-block Quest bound."""

    def __init__(self, every: int = 4, window_tokens: int = 256) -> None:
        super().__init__()
        self.reuse = every_steps(every)
        self.window_tokens = window_tokens
        self.head = HeadIndex()

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        page_tokens = cache["k"].shape[1]
        window = recent(-(-self.window_tokens // page_tokens))(ctx=ctx)
        chosen = self.reuse(self.score(q, cache, ctx).topk(), ctx=ctx)
        streams = self.head(ctx=ctx) % 2 == 1
        o.select(streams.where(window, chosen))
