"""Quest with the bounds of the group added, as where heads share pages."""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.quest import Quest

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("QuestGroupSum",)


@register("quest_group_sum")
class QuestGroupSum(Quest):
    """score(P) = sum_g bound_g(P)."""

    group = "sum of bounds"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.bounds(q, cache).sum(1)
