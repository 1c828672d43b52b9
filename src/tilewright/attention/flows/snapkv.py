"""The prompt is cut once: pages that its last queries attend to stay, and all that comes after.

votes(P) = mean_g of the mass that the last ``observed`` prompt queries give to page P, the largest
within ``reach`` pages on both sides. The plan's number of pages with the most votes is kept at the
first step; later pages are always read.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import FieldSpec, register, vFlow
from tilewright.attention.flows.ready import Ready
from tilewright.attention.graph import Span
from tilewright.attention.indexer import PoolPages, PromptMass, StepIndex
from tilewright.attention.ops.page_axis import Kind

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("snapkv")
class SnapKV(Ready, vFlow):
    """Pages with the most pooled votes of the prompt, chosen once."""

    paper = "SnapKV: LLM Knows What You are Looking for Before Generation (2404.14469)"
    group = "mean of masses"

    def __init__(self, observed: int = 32, reach: int = 1, keep: int | None = None) -> None:
        super().__init__()
        self.keep = keep  # None: the plan's number
        self.prompt = PromptMass(observed)
        self.neighbours = PoolPages(Kind.MAX, before=reach, after=reach, span=Span.ALL)

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {"alive": FieldSpec((1, 1), dtype="bool", initial=1.0)}

    def survivors(self, cache: FieldMap, ctx: ContextBase) -> Value:
        """Bool [S, 1, 1], from the first step on."""
        first = StepIndex()(ctx=ctx) == 0
        votes = self.neighbours(self.prompt(ctx=ctx).mean(2), ctx=ctx)
        alive: Value = first.where(votes.topk(self.keep), cache["alive"])
        cache["alive"] = alive
        return alive

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.survivors(cache, ctx))
