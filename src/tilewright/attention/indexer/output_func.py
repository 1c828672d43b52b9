"""Ends of a flow that select by the plan's budget."""

from typing import Any

from tilewright.attention.graph import Op
from tilewright.attention.indexer.select import Selector
from tilewright.attention.ops import selection

__all__ = ("approxTopK", "topK")


class topK(Selector):
    """The pages with the largest scores, as many as the plan says. ``topK()(score, o, ctx=ctx)``
    ends the flow; without ``o`` it returns the selection.
    """

    definition = selection.TopK

    def build(self, *, per_head: bool = False) -> Op | None:
        return super().build(None, per_head)


class approxTopK(Selector):
    """`topK`: exact on every backend, so a recall of at least 1 - ``tolerate_ratio``."""

    definition = selection.ApproxTopK

    def build(self, tolerate_ratio: Any = 0.0, *, per_head: bool = False) -> Op | None:
        return super().build(tolerate_ratio, per_head)
