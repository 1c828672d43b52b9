"""What every ready flow declares, and the shape that most of them share: a score, then the best."""

from abc import abstractmethod
from typing import Any, ClassVar

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import vFlow, vFlowMLA
from tilewright.errors import FlowInitError

# ruff: noqa: ARG002 - a flow without fields needs no sizes


class Ready:
    """Facts for the table of flows, and what differs between keys and latents."""

    paper: ClassVar[str]
    """Title of the paper with its arXiv number, or where else the rule comes from."""
    group: ClassVar[str]
    """How the query heads of a row come to one choice."""
    keys: ClassVar[str]
    """The field that queries are compared with."""

    def key_fields(self, block_size: int, width: int) -> dict[str, Any]:
        """Return the fields of a page by name, for keys or latents of ``width`` channels."""
        return {}


class OverKeys(Ready, vFlow):
    """A flow over keys and values of one KV head."""

    keys = "k"

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        return self.key_fields(block_size, head_dim)


class OverLatents(Ready, vFlowMLA):
    """A flow over latents that all query heads share."""

    keys = "latent"

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        self.num_plain = kv_lora_rank  # channels before the rotated ones
        return self.key_fields(block_size, kv_lora_rank + qk_rope_head_dim)


class Scored(Ready):
    """One score a page; the plan's number of pages with the largest scores is read."""

    @abstractmethod
    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        """[S, 1, 1]: the larger, the sooner a page is read."""

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.score(q, cache, ctx).topk())


class ScoredFlow(Scored, OverKeys):
    """Over keys and values of one KV head."""


class ScoredFlowMLA(Scored, OverLatents):
    """Over latents that all query heads share."""


def check_page_size(block_size: int, parts_of: int) -> None:
    """Refuse pages that cannot be cut into parts of ``parts_of`` tokens."""
    if block_size % parts_of:
        found, expected = f"pages of {block_size} tokens", f"a multiple of {parts_of}"
        raise FlowInitError("create_cache", found, expected, "choose another page size")


def flow_summary(flow: type) -> str:
    """Return the rule of a ready flow: the first paragraph of its docstring, as one line.

    >>> from tilewright.attention.flows import Quest
    >>> flow_summary(Quest)
    'score(P) = max_g bound_g(P)'
    """
    return " ".join((flow.__doc__ or "").split("\n\n")[0].split()).rstrip(".")
