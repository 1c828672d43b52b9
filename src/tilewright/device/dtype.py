"""What the units of a PE make of a dtype: bytes of blocks, and how a GEMM unit takes it."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from tilewright.device.lookup import look_up
from tilewright.device.size import ceil_div
from tilewright.units import DTYPE_BITS


class Pace(Enum):
    """How fast a GEMM unit multiplies a dtype, beside f16."""

    NARROW = "narrow"  # narrow_speed times the products a cycle
    PLAIN = "plain"
    WIDE = "wide"  # wide_slowdown times the cycles


GEMM_PACE: Mapping[str, Pace] = MappingProxyType(
    {
        "bf16": Pace.PLAIN,
        "f16": Pace.PLAIN,
        "f32": Pace.WIDE,
        "f8e4m3": Pace.NARROW,
        "f8e5m2": Pace.NARROW,
        "i8": Pace.NARROW,
        "u8": Pace.NARROW,
    }
)


def num_bytes_of(where: str, elements: int, dtype: str) -> int:
    """Bytes of packed elements; the last one may be part empty.

    >>> num_bytes_of("a block", 3, "i4")
    2
    """
    return ceil_div(elements * look_up(where, "dtype", dtype, DTYPE_BITS), 8)
