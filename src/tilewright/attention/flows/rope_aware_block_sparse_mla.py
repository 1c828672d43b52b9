"""Pages by their mean latent, on the whole logit.

c_P = mean latent of page P, score(P) = <mean_h q_h, c_P>: the absorbed query sees both the
compressed and the rotated channels.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("RopeAwareBlockSparseMLA",)


@register("rope_aware_block_sparse_mla")
class RopeAwareBlockSparseMLA(ScoredFlowMLA):
    """score(P) = <mean_h q_h, c_P>."""

    paper = "a built-in rule of Vortex (2606.06453)"
    group = "mean of queries"

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        self.num_plain = kv_lora_rank  # channels before the rotated ones
        return {"centroids": (1, kv_lora_rank + qk_rope_head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["centroids"] = cache["latent"].mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return cache["centroids"] @ q.mean(1).T
