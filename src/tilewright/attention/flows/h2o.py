"""Heavy hitters: pages that have drawn the most attention so far.

A_P begins with the mass that the last ``observed`` queries of the prompt gave to page P, and grows
by the mass of every step (mean over the group). The plan's number of living pages with the largest
A stays; what is dropped is gone.

The sum is the published one with ``state_advance="every_block"``: a page then counts from the step
before it is complete. By the rule of Vortex, which is the default, A grows in steps in which the
row selects, and in pages that are not reserved at the end; the rest of the mass is not in it.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import FieldSpec, register
from tilewright.attention.flows.eviction import EvictingFlow
from tilewright.attention.indexer import AttentionMass, PromptMass

__all__ = ("H2O",)


@register("h2o")
class H2O(EvictingFlow):
    """worth_t(P) = worth_(t-1)(P) + mean_g of the mass of P in step t - 1."""

    paper = (
        "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models"
        " (2306.14048)"
    )
    group = "mean of masses"

    def __init__(self, observed: int = 64) -> None:
        super().__init__()
        self.prompt = PromptMass(observed)
        self.last = AttentionMass()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {
            **super().create_cache(block_size, head_dim),
            "accumulated": FieldSpec((1, 1), "float32"),
        }

    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        grown = cache["accumulated"] + self.last(ctx=ctx).mean(2)
        total = first.where(self.prompt(ctx=ctx).mean(2), grown)
        cache["accumulated"] = total
        return total
