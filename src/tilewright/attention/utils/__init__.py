"""Element types and enumerations under the names that users know."""

from enum import IntEnum
from types import MappingProxyType

from tilewright.attention.graph import DType
from tilewright.errors import SpecError

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

DTYPE_STR_TO_TORCH = MappingProxyType(
    {
        "float32": DType.FLOAT32,
        "fp32": DType.FLOAT32,
        "float": DType.FLOAT32,
        "float16": DType.FLOAT16,
        "fp16": DType.FLOAT16,
        "half": DType.FLOAT16,
        "bfloat16": DType.BFLOAT16,
        "bf16": DType.BFLOAT16,
        "float8_e4m3": DType.FLOAT8_E4M3,
        "float8_e4m3fn": DType.FLOAT8_E4M3,
        "fp8_e4m3": DType.FLOAT8_E4M3,
        "float8_e5m2": DType.FLOAT8_E5M2,
        "fp8_e5m2": DType.FLOAT8_E5M2,
        "int32": DType.INT32,
        "int": DType.INT32,
        "int8": DType.INT8,
        "int4": DType.INT4,
        "bool": DType.BOOL,
    }
)
"""Names of element types. The name is Vortex's; the values are ours, and serve wherever an element
type is asked for.
"""


def resolve_dtype(dtype: object) -> DType:
    """A `DType`, a name, a torch dtype or a NumPy dtype as a `DType`.

    >>> resolve_dtype("torch.bfloat16"), resolve_dtype("fp8_e5m2")
    (<DType.BFLOAT16: 'bfloat16'>, <DType.FLOAT8_E5M2: 'float8_e5m2'>)
    """
    if isinstance(dtype, DType):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = DTYPE_STR_TO_TORCH.get(str(name).removeprefix("torch."))
    if found is None:
        known = ", ".join(DTYPE_STR_TO_TORCH)
        raise SpecError("element type", repr(dtype), f"one of {known}", "write one of these")
    return found


def is_hopper(_device: object = None) -> bool:
    """Whether flows run on a Hopper GPU: never, they run on described machines and CPUs."""
    return False


is_hopper_or_newer = is_hopper


class Schedule(IntEnum):
    """Whether Vortex may fuse an op (W) or gives it a kernel of its own (S).

    Kept for tools that read it; here fusion follows from the graph.
    """

    W = 0
    S = 1


Mode = IntEnum("Mode", "profile execute", start=0)
"""What a context is for: tracing, or running."""

ReduceType = IntEnum("ReduceType", "Mean Max Min L2Norm Sum", start=0)
"""Kinds of reductions."""

ElementwiseOpType = IntEnum("ElementwiseOpType", "Relu Sigmoid Silu Add_Mul Abs Log Exp", start=0)
"""Kinds of element-wise ops on one value."""

ElementwiseBinaryOpType = IntEnum(
    "ElementwiseBinaryOpType",
    "Maximum Minimum Multiply Add WhereEqual WhereNotEqual WhereGreater WhereGreaterEqual"
    " WhereLess WhereLessEqual",
    start=0,
)
"""Kinds of element-wise ops on two values."""

QuantizationType = IntEnum("QuantizationType", "none fp8_e5m2 fp8_e4m3 int4", start=0)
"""How keys and values are stored."""
