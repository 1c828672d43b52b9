"""What every ready flow declares, and the shape that most of them share: a score, then the best."""

from abc import abstractmethod
from typing import ClassVar

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import vFlow, vFlowMLA
from tilewright.errors import FlowInitError

__all__ = ("Ready", "ScoredFlow", "ScoredFlowMLA", "check_page_size")


class Ready:
    """Facts for the table of flows."""

    paper: ClassVar[str]
    """Title of the paper with its arXiv number, or where else the rule comes from."""
    group: ClassVar[str]
    """How the query heads of a row come to one choice."""


class Scored(Ready):
    """One score a page; the plan's number of pages with the largest scores is read."""

    @abstractmethod
    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        """[S, 1, 1]: the larger, the sooner a page is read."""

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.score(q, cache, ctx).topk())


class ScoredFlow(Scored, vFlow):
    """Over keys and values of one KV head."""


class ScoredFlowMLA(Scored, vFlowMLA):
    """Over latents that all query heads share."""


def check_page_size(block_size: int, parts_of: int) -> None:
    """Refuse pages that cannot be cut into parts of ``parts_of`` tokens."""
    if block_size % parts_of:
        found, expected = f"pages of {block_size} tokens", f"a multiple of {parts_of}"
        raise FlowInitError("create_cache", found, expected, "choose another page size")
