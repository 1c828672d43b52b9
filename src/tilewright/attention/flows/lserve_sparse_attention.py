"""Quest on sub-blocks: a large page is as good as its best 16 tokens.

M_Pb and m_Pb belong to sub-block b of page P.
score(P) = max over g and b of sum_d max(q_gd M_Pbd, q_gd m_Pbd).
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.cache import MaxInterleave, MinInterleave
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow, check_page_size
from tilewright.attention.indexer import Kron

__all__ = ("LServeSparseAttention",)


@register("lserve_sparse_attention")
class LServeSparseAttention(ScoredFlow):
    """score(P) = max over heads and sub-blocks of the Quest bound."""

    paper = "LServe: Efficient Long-sequence LLM Serving with Unified Sparse Attention (2502.14866)"
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
        high: Value = self.pairs(q, cache["max"], ctx=ctx)
        low: Value = self.pairs(q, cache["min"], ctx=ctx)
        return high.maximum(low).sum(2).max(1)
