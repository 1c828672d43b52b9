"""Element types and enumerations under the names that users know."""

from tilewright.attention.utils.dtype import DTYPE_STR_TO_TORCH, resolve_dtype
from tilewright.attention.utils.hardware import is_hopper, is_hopper_or_newer
from tilewright.attention.utils.kind import (
    ElementwiseBinaryOpType,
    ElementwiseOpType,
    Mode,
    QuantizationType,
    ReduceType,
    Schedule,
)

__all__ = (
    "DTYPE_STR_TO_TORCH",
    "ElementwiseBinaryOpType",
    "ElementwiseOpType",
    "Mode",
    "QuantizationType",
    "ReduceType",
    "Schedule",
    "is_hopper",
    "is_hopper_or_newer",
    "resolve_dtype",
)
