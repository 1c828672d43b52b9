"""The selection branch of native sparse attention alone.

Pages are scored as in `nsa`, by the compressed attention that falls on them; the output is plain
attention over the chosen pages, without gates and without the other two branches.
"""

from types import MappingProxyType

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.nsa import NSA

__all__ = ("NSASelection",)


@register("nsa_selection")
class NSASelection(NSA):
    """score(P) = sum_g of p_g(w) times the quarters that window w shares with P."""

    compressed_fields = MappingProxyType({"k": "key"})

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select(self.score(q, cache, ctx).topk())
