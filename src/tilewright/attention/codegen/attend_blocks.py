"""Sizes of the blocks of attention, and the pools that they come from."""

from dataclasses import dataclass

from tilewright.attention.codegen.body import padded
from tilewright.attention.codegen.narrow_dot import dot_dtype
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import DType, FlowKind, Geometry

__all__ = ("AttendBlocks", "pools_of", "product_dtype")

_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


@dataclass(frozen=True, slots=True)
class AttendBlocks:
    """Padded to powers of two, as Triton demands of a GPU; a target takes any extent."""

    heads: int
    keys: int
    values: int  # channels that are summed up; under a target those of a whole latent
    page_tokens: int
    pages: int  # of a tile

    @staticmethod
    def of(sizes: Geometry, tiling: Tiling, *, is_exact: bool) -> "AttendBlocks":
        pages = max(1, tiling.attend_tokens // sizes.page_size)
        if is_exact:
            values = sizes.key_dim if sizes.kind is FlowKind.MLA else sizes.value_dim
            return AttendBlocks(sizes.query_heads, sizes.key_dim, values, sizes.page_size, pages)
        heads, keys, values = (
            max(_SMALLEST_DOT, padded(size))
            for size in (sizes.query_heads, sizes.key_dim, sizes.value_dim)
        )
        tokens = padded(sizes.page_size)
        return AttendBlocks(
            heads, keys, values, tokens, max(padded(pages), _SMALLEST_DOT // tokens)
        )

    @property
    def tokens(self) -> int:
        """Of a tile."""
        return self.pages * self.page_tokens


def pools_of(sizes: Geometry) -> dict[str, int]:
    """The pools of keys and values with their widths; a latent is both."""
    if sizes.kind is FlowKind.MLA:
        return {"latent_pool": sizes.key_dim}
    return {"k_pool": sizes.key_dim, "v_pool": sizes.value_dim}


def product_dtype(sizes: Geometry) -> DType:
    """What queries and keys, and weights and values, are multiplied in."""
    return dot_dtype(sizes.query_dtype, sizes.kv_dtype)
