"""The sizes that a flow is traced for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypedDict, Unpack

from tilewright.attention.graph.type import DType
from tilewright.errors import SpecError

SCALED_DTYPES = frozenset({DType.INT8, DType.INT4})
"""Types of keys and values whose complete pages are kept as codes with scales."""


class FlowKind(StrEnum):
    """How keys and values are kept."""

    GQA = "gqa"  # fields ``k`` and ``v``, one pair per KV head
    MLA = "mla"  # one field ``latent`` [kv_c | k_pe] for all query heads


class GeometryTypes(TypedDict, total=False):
    """Keywords of `Geometry` that are types; those that are left out are bfloat16."""

    kv_dtype: DType
    query_dtype: DType
    field_dtype: DType


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
        # other types would cut keys, queries or summaries down to whole numbers
        whole = "; a field of whole numbers says FieldSpec(..., dtype=...)"
        for name, scaled, expected, more in (
            ("kv_dtype", SCALED_DTYPES, "a float, or int8 or int4, whose pages have scales", ""),
            ("query_dtype", (), "a float", ""),
            ("field_dtype", (), "a float", whole),
        ):
            dtype = getattr(self, name)
            if not dtype.is_float and dtype not in scaled:
                fix = f"keep them in bfloat16{more}"
                raise SpecError(f"geometry.{name}", str(dtype), expected, fix)

    @classmethod
    def gqa(
        cls, *, page_size: int, head_dim: int, query_heads: int, **dtypes: Unpack[GeometryTypes]
    ) -> Self:
        """Return keys and values of one width; ``query_heads`` share a KV head."""
        return cls(
            kind=FlowKind.GQA,
            page_size=page_size,
            query_heads=query_heads,
            key_dim=head_dim,
            value_dim=head_dim,
            **dtypes,
        )

    @classmethod
    def mla(
        cls,
        *,
        page_size: int,
        kv_lora_rank: int,
        qk_rope_head_dim: int,
        query_heads: int,
        **dtypes: Unpack[GeometryTypes],
    ) -> Self:
        """Return one latent for all query heads, and the absorbed query."""
        return cls(
            kind=FlowKind.MLA,
            page_size=page_size,
            query_heads=query_heads,
            key_dim=kv_lora_rank + qk_rope_head_dim,
            value_dim=kv_lora_rank,
            **dtypes,
        )

    @property
    def read_dtype(self) -> DType:
        """The element type that flows read keys and values in: bfloat16 for codes with scales."""
        return DType.BFLOAT16 if self.kv_dtype in SCALED_DTYPES else self.kv_dtype

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


def dtypes_of(dtype: DType) -> GeometryTypes:
    """Return the types of a geometry whose keys and values are kept in ``dtype``.

    Summaries have the same type, unless it is one of whole numbers; queries too, unless it has one
    byte or less: they are not kept, so nothing is saved by rounding them. Both are bfloat16 then.

    >>> found = dtypes_of(DType.FLOAT8_E4M3)
    >>> found["kv_dtype"].value, found["query_dtype"].value, found["field_dtype"].value
    ('float8_e4m3', 'bfloat16', 'float8_e4m3')
    """
    return {
        "kv_dtype": dtype,
        "query_dtype": dtype if dtype.bits > 8 else DType.BFLOAT16,
        "field_dtype": dtype if dtype.is_float else DType.BFLOAT16,
    }
