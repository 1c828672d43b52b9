"""Pages by the best mean latent of their sub-blocks.

c_Pb = mean latent of 16 tokens, score(P) = max_b <mean_h q_h, c_Pb>.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.cache import MeanInterleave
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA, check_page_size

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("LServeCentroidMLA",)


@register("lserve_centroid_mla")
class LServeCentroidMLA(ScoredFlowMLA):
    """score(P) = max_b <mean_h q_h, c_Pb>."""

    paper = "LServe: Efficient Long-sequence LLM Serving with Unified Sparse Attention (2502.14866)"
    group = "mean of queries"

    SUB_BLOCK_SIZE = 16

    def __init__(self) -> None:
        super().__init__()
        self.by_part = MeanInterleave(dim=1, k=self.SUB_BLOCK_SIZE)

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        check_page_size(block_size, self.SUB_BLOCK_SIZE)
        self.num_plain = kv_lora_rank
        parts = block_size // self.SUB_BLOCK_SIZE
        return {"centroids": (parts, kv_lora_rank + qk_rope_head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        self.by_part(cache["latent"], cache["centroids"], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return (cache["centroids"] @ q.mean(1).T).max(1)
