"""Token omission via attention: what the last query liked least goes.

worth(P) = mean_g of the mass of page P in the last step, at the first step that of the prompt's
last query. The plan's number of living pages stays; what is dropped is gone.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.eviction import EvictingFlow
from tilewright.attention.indexer import AttentionMass, PromptMass

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("TOVA",)


@register("tova")
class TOVA(EvictingFlow):
    """worth(P) = mean_g of the mass of P in the last step."""

    paper = "Transformers are Multi-State RNNs (2401.06104)"
    group = "mean of masses"

    def __init__(self) -> None:
        super().__init__()
        self.prompt = PromptMass(1)
        self.last = AttentionMass()

    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return first.where(self.prompt(ctx=ctx).mean(2), self.last(ctx=ctx).mean(2))
