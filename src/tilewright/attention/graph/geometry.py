"""The sizes that a flow is traced for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from tilewright.attention.graph.dtype import DType
from tilewright.errors import SpecError

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

    def __post_init__(self) -> None:
        for name in ("page_size", "query_heads", "key_dim", "value_dim"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                fix = "sizes of a model are whole numbers"
                raise SpecError(f"geometry.{name}", repr(size), "at least 1", fix)

    @classmethod
    def gqa(
        cls,
        *,
        page_size: int,
        head_dim: int,
        query_heads: int,
        kv_dtype: DType = DType.BFLOAT16,
        query_dtype: DType = DType.BFLOAT16,
        field_dtype: DType = DType.BFLOAT16,
    ) -> Self:
        """Keys and values of one width; ``query_heads`` share a KV head."""
        return cls(
            kind=FlowKind.GQA,
            page_size=page_size,
            query_heads=query_heads,
            key_dim=head_dim,
            value_dim=head_dim,
            kv_dtype=kv_dtype,
            query_dtype=query_dtype,
            field_dtype=field_dtype,
        )

    @classmethod
    def mla(
        cls,
        *,
        page_size: int,
        kv_lora_rank: int,
        qk_rope_head_dim: int,
        query_heads: int,
        kv_dtype: DType = DType.BFLOAT16,
        query_dtype: DType = DType.BFLOAT16,
        field_dtype: DType = DType.BFLOAT16,
    ) -> Self:
        """One latent for all query heads, and the absorbed query."""
        return cls(
            kind=FlowKind.MLA,
            page_size=page_size,
            query_heads=query_heads,
            key_dim=kv_lora_rank + qk_rope_head_dim,
            value_dim=kv_lora_rank,
            kv_dtype=kv_dtype,
            query_dtype=query_dtype,
            field_dtype=field_dtype,
        )

    @property
    def rope_dim(self) -> int:
        """Under MLA the channels of a latent that carry positions."""
        return self.key_dim - self.value_dim

    @property
    def reserved_fields(self) -> dict[str, tuple[int, int]]:
        """The fields that every flow has, with their inner shapes."""
        if self.kind is FlowKind.MLA:
            return {"latent": (self.page_size, self.key_dim)}
        return {"k": (self.page_size, self.key_dim), "v": (self.page_size, self.value_dim)}
