"""Between what a page holds on average and what it may hold at most.

score(P) = max_g (a <q_g, c_P> + (1 - a) bound_g(P)), a = 0.5.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.quest import Quest

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("MeanQuestBlend",)


@register("mean_quest_blend")
class MeanQuestBlend(Quest):
    """score(P) = max_g (a <q_g, c_P> + (1 - a) bound_g(P))."""

    group = "max of blends"

    def __init__(self, mean_weight: float = 0.5) -> None:
        super().__init__()
        self.mean_weight = mean_weight

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {**super().create_cache(block_size, head_dim), "centroids": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["centroids"] = cache["k"].mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        mean = q @ cache["centroids"].T
        blend = self.mean_weight * mean + (1.0 - self.mean_weight) * self.bounds(q, cache)
        return blend.max(1)
