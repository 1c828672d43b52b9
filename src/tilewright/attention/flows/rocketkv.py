"""Two stages: the prompt is cut once, then each query chooses among what is left.

Stage one is that of `snapkv` with ``keep`` pages. Stage two takes the r channels with the largest
sum_g |q_gd| and ranks living pages by the Quest bound on them, max over the group.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.snapkv import SnapKV

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("rocketkv")
class RocketKV(SnapKV):
    """score(P) = max_g sum over r channels of max(q_gd M_Pd, q_gd m_Pd), for living pages."""

    paper = (
        "RocketKV: Accelerating Long-Context LLM Inference via Two-Stage KV Cache Compression"
        " (2502.14051)"
    )
    group = "channels by the sum, pages by the max"

    def __init__(
        self, keep: int = 256, channels: int = 32, observed: int = 32, reach: int = 1
    ) -> None:
        super().__init__(observed, reach, keep)
        self.channels = channels

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        own = {"max": (1, head_dim), "min": (1, head_dim)}
        return {**super().create_cache(block_size, head_dim), **own}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["max"] = cache["k"].max(1)
        cache["min"] = cache["k"].min(1)

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        alive = self.survivors(cache, ctx)
        chosen = abs(q).sum(1).argtop(self.channels)
        strong, high, low = (x.gather(chosen) for x in (q, cache["max"], cache["min"]))
        bound = (strong * high).maximum(strong * low).sum(2).max(1)
        o.select(alive.where(bound, -1e30).topk() & alive)
