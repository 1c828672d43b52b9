"""Pages by the attention to mean-pooled windows that overlap them.

Windows are half a page wide and a quarter of a page apart (32 and 16 tokens for pages of 64).
p_g(w) = softmax over all whole windows of q_g . mean key of w / sqrt(D), added over the group;
score(P) = the largest of the windows that touch P. Sequences below ``dense_below`` tokens are read
whole.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.cache import MeanInterleave
from tilewright.attention.flow import register
from tilewright.attention.flows.nsa import WINDOWS, finished_windows, next_quarter
from tilewright.attention.flows.ready import ScoredFlow, check_page_size
from tilewright.attention.indexer import PageCount, ShiftPages


@register("infllm_v2")
class InfLLMv2(ScoredFlow):
    """score(P) = max over windows that touch P of sum_g p_g(w)."""

    paper = (
        "InfLLM-V2: Dense-Sparse Switchable Attention for Seamless Short-to-Long Adaptation"
        " (2509.24663)"
    )
    group = "sum of shares"

    def __init__(self, dense_below: int = 0) -> None:
        super().__init__()
        self.dense_below = dense_below
        self.pages = PageCount()
        self.before = ShiftPages(-1)

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        check_page_size(block_size, WINDOWS)
        self.page_tokens = block_size
        return {"quarters": (WINDOWS, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        by_quarter = MeanInterleave(dim=1, k=self.page_tokens // WINDOWS)
        by_quarter(cache["k"], cache["quarters"], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        quarters = (cache["quarters"] @ q.T) * (1.0 / math.sqrt(q.shape[2]))
        logits = 0.5 * (quarters + next_quarter(quarters))  # a mean of two means
        logits = finished_windows(self.page_tokens, ctx).where(logits, -1e30)
        weights = (logits - logits.max(1).max(0, span="all")).exp()
        shares = (weights / weights.sum(1).sum(0, span="all")).sum(2)
        return shares.max(1).maximum(self.before(shares[:, WINDOWS - 1 :], ctx=ctx))

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        short = self.pages(ctx=ctx) * self.page_tokens < self.dense_below
        o.select(self.score(q, cache, ctx).topk() | short)
