"""Pages of keys and values as codes of 8 or 4 bits with scales."""

from dataclasses import dataclass

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.graph import DType, Geometry
from tilewright.attention.graph.geometry import SCALED_DTYPES

STAGED_DTYPE = DType.BFLOAT16  # of the tokens of a page that is not complete
SCALE_DTYPE = DType.BFLOAT16
_LARGEST_CODE = {DType.INT8: 127, DType.INT4: 7}  # of both signs, so that zero stays zero


@dataclass(frozen=True, slots=True)
class PageCodes:
    """How the complete pages of one field are kept.

    A code is a value over its scale, rounded to the nearest whole number, ties to even. A scale is
    the largest magnitude over ``axis``, divided by the largest code and rounded to bfloat16. What
    is read back is code times scale, within half a scale of the staged value.
    """

    dtype: DType
    axis: int  # -2: a scale for each channel of a page; -1: for each token

    def read_back(self, namespace: Namespace, pages: Array) -> Array:
        """Return what staged values [..., tokens, channels] of complete pages are read as."""
        xp, limit = namespace.xp, _LARGEST_CODE[self.dtype]
        largest = xp.max(xp.abs(pages), axis=self.axis, keepdims=True)
        scale = namespace.rounded(largest / limit, SCALE_DTYPE)
        divisor = xp.where(scale > 0, scale, xp.ones_like(scale))
        return xp.clip(xp.round(pages / divisor), -limit, limit) * scale

    def page_bytes(self, tokens: int, channels: int) -> int:
        """Return the bytes of a page's codes and scales."""
        scales = channels if self.axis == -2 else tokens
        return -(-tokens * channels * self.dtype.bits // 8) + scales * SCALE_DTYPE.bits // 8


def page_codes_of(geometry: Geometry) -> dict[str, PageCodes]:
    """Return the codes of keys and values; none where their type is a float.

    Keys, and latents, have a scale for each channel; values one for each token.
    """
    if geometry.kv_dtype not in SCALED_DTYPES:
        return {}
    axes = {name: -1 if name == "v" else -2 for name in geometry.reserved_fields}
    return {name: PageCodes(geometry.kv_dtype, axis) for name, axis in axes.items()}
