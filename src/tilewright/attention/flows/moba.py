"""Every query head reads the pages whose mean key it likes best.

score_g(P) = <q_g, c_P>, and head g attends to its own plan's number of pages. The page of the
query itself is reserved.
"""

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("MoBA",)


@register("moba")
class MoBA(BlockSparseAttention):
    """score_g(P) = <q_g, c_P>, a choice for each query head."""

    paper = "MoBA: Mixture of Block Attention for Long-Context LLMs (2502.13189)"
    group = "none: each query head chooses"

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        o.select((cache["centroids"] @ q.T).topk(per_head=True))
