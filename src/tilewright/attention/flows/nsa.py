"""Attention to compressed windows, half a page wide and a quarter of a page apart."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from tilewright.attention.abs import BranchSpec, ContextBase, FieldMap, OutputSlot, Parameter, Value
from tilewright.attention.cache import GeMM as CacheGeMM
from tilewright.attention.cache import MeanInterleave, Reshape
from tilewright.attention.flow import register
from tilewright.attention.flows.learned import Learned, Tables
from tilewright.attention.flows.ready import ScoredFlow, check_page_size
from tilewright.attention.indexer import (
    Concat,
    PageCount,
    ShiftPages,
    Silu,
    TokenCount,
    recent,
)

WINDOWS = 4
"""Windows that begin in a page."""


def next_quarter(quarters: Value) -> Value:
    """[S, 4, c]: at each quarter the one behind it, of the next page after the last."""
    first_of_next = ShiftPages(1)(quarters[:, :1])
    return Concat(dim=1)(quarters[:, 1:], first_of_next)


def finished_windows(page_tokens: int, ctx: ContextBase) -> Value:
    """Bool [S, 4, 1]: whether all tokens of a window lie in pages that are complete."""
    tokens = TokenCount()(ctx=ctx)
    here, behind = tokens == page_tokens, ShiftPages(1)(tokens) == page_tokens
    return Concat(dim=1)(here, here, here, behind)


@register("nsa")
class NSA(Learned, ScoredFlow):
    """Three gated branches; pages by the compressed attention that falls on them.

    A window w is compressed to one key and one value by phi(x) = W2 silu(W1 flat(x) + b).
    p_g(w) = softmax over whole windows of q_g . phi(K_w) / sqrt(D).
    score(P) = sum_g of p_g(w) times the quarters that w shares with P. The output is
    sigma(G1 q) attention over windows + sigma(G2 q) attention over the chosen pages
    + sigma(G3 q) attention over the last ``window_tokens`` tokens, in whole pages.

    Tables for ``key`` and for ``value``: ``_head`` and ``_tail`` [hidden, quarter * D] (W1 for the
    two quarters of a window), ``_bias`` [1, hidden], ``_out`` [D, hidden]; and ``gates`` [3, D].
    """

    paper = (
        "Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention"
        " (2502.11089)"
    )
    group = "sum of shares"

    compressed_fields: ClassVar[Mapping[str, str]] = MappingProxyType({"k": "key", "v": "value"})

    def __init__(
        self,
        hidden: int = 32,
        window_tokens: int = 512,
        weights: Tables = None,
        seed: int = 0,
    ) -> None:
        super().__init__(weights, seed)
        self.hidden = hidden
        self.window_tokens = window_tokens
        self.bend = Silu(beta=-1.0)
        self.before = ShiftPages(-1)

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        check_page_size(block_size, WINDOWS)
        self.page_tokens, self.width = block_size, head_dim
        shape = (WINDOWS, self.hidden)
        kept = self.compressed_fields.values()
        return {f"{name}_{part}": shape for name in kept for part in ("head", "tail")}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        columns = self.page_tokens // WINDOWS * self.width
        in_quarters = Reshape(-1, WINDOWS, columns)
        for source, name in self.compressed_fields.items():
            quarters = in_quarters(cache[source], None, loc=loc, ctx=ctx)
            for part in ("head", "tail"):
                table = self.weights.matrix(f"{name}_{part}", self.hidden, columns)
                cache[f"{name}_{part}"] = CacheGeMM()(quarters, table, None, ctx=ctx).T

    def compressed(self, cache: FieldMap, name: str) -> Value:
        """phi of every window: [S, 4, D]"""
        tail = next_quarter(cache[f"{name}_tail"])
        bias = self.weights.matrix(f"{name}_bias", 1, self.hidden)
        hidden = self.bend(cache[f"{name}_head"] + tail + bias)
        table = self.weights.matrix(f"{name}_out", self.width, self.hidden)
        return self.product(hidden, table).T

    def logits(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        """[S, 4, H]"""
        found = (self.compressed(cache, "key") @ q.T) * (1.0 / math.sqrt(q.shape[2]))
        return finished_windows(self.page_tokens, ctx).where(found, -1e30)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        logits = self.logits(q, cache, ctx)
        weights = (logits - logits.max(1).max(0, span="all")).exp()
        shares = (weights / weights.sum(1).sum(0, span="all")).sum(2)
        inside, last = shares[:, : WINDOWS - 1], shares[:, WINDOWS - 1 :]
        before = self.before(last, ctx=ctx)
        return 2.0 * inside.sum(1) + last + before

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        whole = finished_windows(self.page_tokens, ctx)
        values = whole.where(self.compressed(cache, "value"), 0.0)
        window = recent(-(-self.window_tokens // self.page_tokens))
        gates = self._gates(q, self.weights.matrix("gates", 3, self.width))
        o.combine(
            [
                BranchSpec(gate=gates[0], logits=self.logits(q, cache, ctx), values=values),
                BranchSpec(self.score(q, cache, ctx).topk(), gate=gates[1]),
                BranchSpec(window(ctx=ctx), gate=gates[2]),
            ]
        )

    def _gates(self, q: Value, table: Parameter) -> list[Value]:
        """[1, H, 1] for each branch."""
        gates = self.product(q, table).sigmoid()
        return [gates[:, branch : branch + 1].T for branch in range(3)]


@register("nsa_selection")
class NSASelection(NSA):
    """score(P) = sum_g of p_g(w) times the quarters that window w shares with P.

    The selection branch of `nsa` alone: plain attention over the chosen pages, without gates and
    without the other two branches.
    """

    compressed_fields = MappingProxyType({"k": "key"})

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.score(q, cache, ctx).topk())


@register("infllm_v2")
class InfLLMv2(ScoredFlow):
    """score(P) = max over windows that touch P of sum_g p_g(w).

    p_g(w) = softmax over all whole windows of q_g . mean key of w / sqrt(D), added over the group
    (windows of 32 tokens, 16 apart, for pages of 64). Sequences below ``dense_below`` tokens are
    read whole.
    """

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
