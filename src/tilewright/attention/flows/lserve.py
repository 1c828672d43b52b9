"""LServe: a large page is as good as the best of its sub-blocks of 16 tokens.

M_Pb, m_Pb and c_Pb are the largest, smallest and mean key (or latent) of sub-block b of page P.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.cache import MaxInterleave, MeanInterleave, MinInterleave
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA, check_page_size
from tilewright.attention.indexer import HeadIndex, Kron, recent
from tilewright.attention.indexer import every as every_steps

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

_PAPER = "LServe: Efficient Long-sequence LLM Serving with Unified Sparse Attention (2502.14866)"


@register("lserve_sparse_attention")
class LServeSparseAttention(ScoredFlow):
    """score(P) = max over heads and sub-blocks of the Quest bound.

    score(P) = max over g and b of sum_d max(q_gd M_Pbd, q_gd m_Pbd).
    """

    paper = _PAPER
    group = "max of bounds"

    LSERVE_BLOCK_SIZE = 16

    def __init__(self) -> None:
        super().__init__()
        self.pairs = Kron(dim=1)  # every head with every sub-block

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        check_page_size(block_size, self.LSERVE_BLOCK_SIZE)
        shape = (block_size // self.LSERVE_BLOCK_SIZE, head_dim)
        return {"max": shape, "min": shape}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        for name, reduction in (("max", MaxInterleave), ("min", MinInterleave)):
            by_part = reduction(dim=1, k=self.LSERVE_BLOCK_SIZE)
            by_part(cache["k"], cache[name], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        high, low = (self.pairs(q, cache[name], ctx=ctx) for name in ("max", "min"))
        return high.maximum(low).sum(2).max(1)


@register("lserve")
class LServe(LServeSparseAttention):
    """Streaming heads, and a reused choice by the sub-block Quest bound.

    KV heads with an odd number read sinks and the last ``window_tokens`` tokens, in whole pages.
    The others rank pages as `lserve_sparse_attention` does, and keep a choice for ``every`` steps.
    Which heads stream is learned in the paper; here it is their number.
    """

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


class SubBlockCentroids(Scored):
    """score(P) = max_b <mean_g q_g, c_Pb>, over keys or latents."""

    paper = _PAPER
    group = "mean of queries"

    SUB_BLOCK_SIZE = 16

    def __init__(self) -> None:
        super().__init__()
        self.by_part = MeanInterleave(dim=1, k=self.SUB_BLOCK_SIZE)

    def key_fields(self, block_size: int, width: int) -> dict[str, tuple[int, int]]:
        check_page_size(block_size, self.SUB_BLOCK_SIZE)
        return {"centroids": (block_size // self.SUB_BLOCK_SIZE, width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        self.by_part(cache[self.keys], cache["centroids"], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return (cache["centroids"] @ q.mean(1).T).max(1)


@register("lserve_centroid_sparse_attention")
class LServeCentroidSparseAttention(SubBlockCentroids, ScoredFlow):
    """score(P) = max_b <mean_g q_g, c_Pb>."""


@register("lserve_centroid_mla")
class LServeCentroidMLA(SubBlockCentroids, ScoredFlowMLA):
    """score(P) = max_b <mean_h q_h, c_Pb>."""


@register("rope_unaware_lserve_centroid_mla")
class RopeUnawareLServeCentroidMLA(LServeCentroidMLA):
    """score(P) = max_b <mean_h q_nope_h, c_kv_Pb>.

    The rotated channels do not count.
    """

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = cache["centroids"][:, :, : self.num_plain]
        return (plain @ q[:, :, : self.num_plain].mean(1).T).max(1)
