"""Quest with one choice for all heads of a request: mean queries, bounds added over KV heads.

score(P) = sum over KV heads of sum_d max(qbar_d M_Pd, qbar_d m_Pd), qbar = mean_g q_g.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.quest import Quest
from tilewright.attention.indexer import AcrossHeads
from tilewright.attention.ops.page_axis import Kind

__all__ = ("QuestMeanQuery",)


@register("quest_mean_query")
class QuestMeanQuery(Quest):
    """score(P) = sum over KV heads of bound(mean_g q_g, P)."""

    group = "bound of the mean query, sum over KV heads"

    def __init__(self) -> None:
        super().__init__()
        self.over_heads = AcrossHeads(Kind.SUM)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        bound: Value = self.over_heads(self.bounds(q.mean(1), cache), ctx=ctx)
        return bound
