"""Quest without the first channels of a head.

score(P) = max_g sum over d >= 8 of max(q_gd M_Pd, q_gd m_Pd).
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.quest import Quest

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("MaskedQuestSparseAttention",)


@register("masked_quest_sparse_attention")
class MaskedQuestSparseAttention(Quest):
    """score(P) = max_g of the bound on channels 8 and up."""

    MASK_END = 8

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        high, low = (cache[name][:, :, self.MASK_END :] for name in ("max", "min"))
        kept = q[:, :, self.MASK_END :]
        return (kept * high).maximum(kept * low).sum(2).max(1)
