"""Quest on latents: the bound of the mean query.

M_P, m_P = largest and smallest latent of page P, channel by channel;
score(P) = sum_d max(qbar_d M_Pd, qbar_d m_Pd), qbar = mean_h q_h.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("QuestMLA",)


@register("quest_mla")
class QuestMLA(ScoredFlowMLA):
    """score(P) = bound(mean_h q_h, P)."""

    paper = "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference (2406.10774)"
    group = "mean of queries"

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        shape = (1, kv_lora_rank + qk_rope_head_dim)
        return {"max": shape, "min": shape}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["max"] = cache["latent"].max(1)
        cache["min"] = cache["latent"].min(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        mean = q.mean(1)
        return (mean * cache["max"]).maximum(mean * cache["min"]).sum(2)
