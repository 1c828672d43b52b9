"""Pages of latents by chance, a new draw at every step, as in `random`."""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.random import PageHash
from tilewright.attention.flows.ready import ScoredFlowMLA

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("RandomMLA",)


@register("random_mla")
class RandomMLA(ScoredFlowMLA):
    """score(P) = hash(seed, layer, step, position of P)."""

    paper = "none: the lower end of every comparison"
    group = "none: the query does not matter"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.draw = PageHash(seed)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.draw(ctx)
