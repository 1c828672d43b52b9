"""The sizes that a flow is traced for."""

from dataclasses import dataclass
from enum import StrEnum

from tilewright.attention.graph.dtype import DType

__all__ = ("FlowKind", "Geometry")


class FlowKind(StrEnum):
    """How keys and values are kept."""

    GQA = "gqa"  # fields ``k`` and ``v``, one pair per KV head
    MLA = "mla"  # one field ``latent`` [kv_c | k_pe] for all query heads


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """One row: its page, its query heads and the widths of keys and values.

    Under MLA ``key_dim`` is the width of a latent (kv_lora_rank + qk_rope_head_dim) and
    ``value_dim`` is kv_lora_rank: the first ``value_dim`` channels of a latent are its value.
    """

    kind: FlowKind
    page_size: int  # tokens of a page
    query_heads: int  # query heads that share the row's KV head
    key_dim: int
    value_dim: int
    kv_dtype: DType = DType.BFLOAT16
    query_dtype: DType = DType.BFLOAT16
    field_dtype: DType = DType.BFLOAT16

    @property
    def reserved_fields(self) -> dict[str, tuple[int, int]]:
        """The fields that every flow has, with their inner shapes."""
        if self.kind is FlowKind.MLA:
            return {"latent": (self.page_size, self.key_dim)}
        return {"k": (self.page_size, self.key_dim), "v": (self.page_size, self.value_dim)}
