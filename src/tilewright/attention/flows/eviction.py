"""Flows that forget for good: a page that was dropped is never read again."""

from abc import abstractmethod

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import FieldSpec, vFlow
from tilewright.attention.flows.ready import Ready
from tilewright.attention.indexer import StepIndex

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("EvictingFlow",)


class EvictingFlow(Ready, vFlow):
    """Keeps the plan's number of living pages with the largest worth; the others die.

    State ``alive`` is true until a page is dropped. Reserved pages live, and so does a page that is
    still being filled. A row that fits its budget reads every page, unless state advances in every
    block (``state_advance="every_block"``).
    """

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, object]:
        return {"alive": FieldSpec((1, 1), dtype="bool", initial=1.0)}

    @abstractmethod
    def worth(self, first: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        """[S, 1, 1] at this step; ``first`` is true at the first step of a request."""

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        first = StepIndex()(ctx=ctx) == 0
        alive = cache["alive"]
        kept = alive.where(self.worth(first, cache, ctx), -1e30).topk() & alive
        cache["alive"] = kept
        o.select(kept)
