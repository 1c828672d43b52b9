"""The best pages exactly, the others by their mean key and mean value.

Page P of n keys with mean c_P enters, if it is not read, as n e^(q.c_P / sqrt(D)) below and
e^(q.c_P / sqrt(D)) sum_i v_i above the line of the softmax. RetroInfer does so with clusters of
keys; here a cluster is a page. score(P) = <mean_g q_g, c_P>.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.centroid import BlockSparseAttention


@register("retro_infer")
class RetroInfer(BlockSparseAttention):
    """Top pages by <mean_g q_g, c_P> exact, the rest estimated."""

    paper = (
        "RetroInfer: A Vector-Storage Approach for Scalable Long-Context LLM Inference (2505.02922)"
    )

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.page_tokens = block_size
        return {**super().create_cache(block_size, head_dim), "mean_value": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["mean_value"] = cache["v"].mean(1)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        chosen = self.score(q, cache, ctx).topk()
        scale = 1.0 / math.sqrt(q.shape[2])
        logits = (cache["centroids"] @ q.T) * scale + math.log(self.page_tokens)
        o.estimate(chosen, logits, cache["mean_value"])
