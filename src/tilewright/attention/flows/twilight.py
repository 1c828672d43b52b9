"""Top-p on top of another rule: as many pages as the query needs.

The base chooses the plan's number of pages. On four-bit keys the attention inside that choice is
estimated, softmax over its tokens, mean over the group, added by page; the fewest pages that hold
the share p of it are read. Reserved pages are read in any case and not part of the estimate.
"""

import math

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import FieldSpec, register, vFlow
from tilewright.attention.flows.quest import Quest
from tilewright.attention.flows.ready import Ready, ScoredFlow

__all__ = ("Twilight",)

STEPS = 15  # between the 16 levels of four bits
ZERO_CODE = 8  # levels below the one that is stored as 0


@register("twilight")
class Twilight(Ready, vFlow):
    """Smallest part of the base's choice with an estimated mass of at least p."""

    paper = "Twilight: Adaptive Attention Sparsity with Hierarchical Top-p Pruning (2502.02770)"
    group = "mean of masses"

    def __init__(self, p: float = 0.95, base: ScoredFlow | None = None) -> None:
        super().__init__()
        self.p = p
        self.base = Quest() if base is None else base

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        own = {
            "key_code": FieldSpec((block_size, head_dim), dtype="int4"),
            "key_step": (block_size, 1),
            "key_middle": (block_size, 1),
        }
        return {**self.base.create_cache(block_size, head_dim), **own}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        self.base.forward_cache(cache, loc, ctx)
        keys = cache["k"]
        low = keys.min(2)
        step = (keys.max(2) - low) / STEPS
        code = ((keys - low) / (step > 0.0).where(step, 1.0) + 0.5).floor() - ZERO_CODE
        cache["key_code"] = code.cast("int32")
        cache["key_step"] = step
        cache["key_middle"] = low + ZERO_CODE * step

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        chosen = self.base.score(q, cache, ctx).topk()
        keys = cache["key_code"] * cache["key_step"] + cache["key_middle"]
        logits = chosen.where((keys @ q.T) * (1.0 / math.sqrt(q.shape[2])), -1e30)
        weights = (logits - logits.max(1).max(0)).exp().sum(1)
        masses = (weights / weights.sum(0)).mean(2)
        o.select(masses.top_p(self.p) & chosen)
