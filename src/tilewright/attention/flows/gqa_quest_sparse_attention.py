"""Quest under the name that Vortex gives it: the largest bound of the group."""

from tilewright.attention.flow import register
from tilewright.attention.flows.quest import Quest

__all__ = ("GQAQuestSparseAttention",)


@register("gqa_quest_sparse_attention")
class GQAQuestSparseAttention(Quest):
    """score(P) = max_g sum_d max(q_gd M_Pd, q_gd m_Pd)."""
