"""tl: what a kernel may say, its values and meaning; Triton adaptor."""

from tilewright.language.dtype import (
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilewright.language.kernel import Constexpr as constexpr  # noqa: N813  # Triton's name
from tilewright.language.library.creation import (
    arange,
    cdiv,
    full,
    next_power_of_2,
    num_programs,
    program_id,
    zeros,
    zeros_like,
)
from tilewright.language.library.math import UNARY, dot, maximum, minimum, where
from tilewright.language.library.memory import load, store
from tilewright.language.library.reduction import max, min, sum

globals().update(UNARY)
