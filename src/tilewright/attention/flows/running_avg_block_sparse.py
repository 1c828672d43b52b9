"""Pages by a score that remembers earlier steps.

r_t(P) = 0.5 r_(t-1)(P) + <mean_g q_g, c_P>, and r = 0 when the page is complete.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

__all__ = ("RunningAvgBlockSparse",)


@register("running_avg_block_sparse")
class RunningAvgBlockSparse(BlockSparseAttention):
    """score_t(P) = 0.5 score_(t-1)(P) + <mean_g q_g, c_P>."""

    paper = "a built-in rule of Vortex (2606.06453)"

    ALPHA = 0.5

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {**super().create_cache(block_size, head_dim), "running_score": (1, 1)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["running_score"] = 0.0

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        running = self.ALPHA * cache["running_score"] + self.score(q, cache, ctx)
        cache["running_score"] = running
        o.select(running.topk())
