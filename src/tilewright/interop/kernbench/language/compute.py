"""Arithmetic of a kernel: results have the dtype of their operands, rounded once."""

from collections.abc import Callable
from typing import Any

from tilewright.interop.kernbench.language.handle import (
    TensorHandle,
    handle_of,
    operand_of,
    parse_dtype,
    rounded,
)
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DType, float16
from tilewright.language.executor import current_program
from tilewright.language.library import creation, libdevice, math, reduction
from tilewright.language.library import shape as shapes
from tilewright.language.pointer import Ref
from tilewright.language.promote import computation_dtype
from tilewright.language.value import Value


def _function(function: Callable[..., Any]) -> Callable[[Any], TensorHandle]:
    """Make a function of every element, which is a float."""
    name = function.__name__

    def call(x: Any) -> TensorHandle:
        operand = operand_of(x)
        if isinstance(operand, Value) and not operand.dtype.is_floating():
            found = f"tl.{name} of {x!r}"
            raise current_program().error(found, "floats", 'convert it by tl.cast(x, "f32")')
        return handle_of(function(operand))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Compute {name} of every element."
    return call


def abs(x: Any) -> TensorHandle:
    """Return the magnitude of every element."""
    return handle_of(libdevice.abs(operand_of(x)))


ceil = _function(libdevice.ceil)
cos = _function(libdevice.cos)
erf = _function(libdevice.erf)
exp = _function(libdevice.exp)
exp2 = _function(libdevice.exp2)
floor = _function(libdevice.floor)
log = _function(libdevice.log)
log2 = _function(libdevice.log2)
rsqrt = _function(libdevice.rsqrt)
sigmoid = _function(libdevice.sigmoid)
sin = _function(libdevice.sin)
sqrt = _function(libdevice.sqrt)
tanh = _function(libdevice.tanh)


def maximum(x: Any, y: Any) -> Any:
    """Return the greater of two elements; a number beats NaN."""
    return _number_or_handle(math.maximum(operand_of(x), operand_of(y)))


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of two elements; a number beats NaN."""
    return _number_or_handle(math.minimum(operand_of(x), operand_of(y)))


def _number_or_handle(value: Any) -> Any:
    """Return the extreme of two numbers as a number."""
    return handle_of(value) if isinstance(value, Value) else value


def fma(x: Any, y: Any, z: Any) -> TensorHandle:
    """Compute x y + z, rounded once."""
    return handle_of(libdevice.fma(operand_of(x), operand_of(y), operand_of(z)))


def clamp(x: Any, min: Any, max: Any) -> TensorHandle:
    """Return x, but no less than min and no more than max."""
    return handle_of(math.clamp(operand_of(x), operand_of(min), operand_of(max)))


def where(condition: Any, x: Any, y: Any) -> TensorHandle:
    """Return x where the condition holds, else y."""
    return handle_of(math.where(operand_of(condition), operand_of(x), operand_of(y)))


def cast(x: Any, dtype: str) -> TensorHandle:
    """Return the same values in another dtype."""
    return handle_of(math.cast(operand_of(x), parse_dtype(dtype)))


def dot(a: Any, b: Any) -> TensorHandle:
    """Multiply two matrices: added up in f32, rounded once to the operands' dtype.

    Operands of two dtypes meet in the wider one; 8-bit integers give i32.
    """
    left, right = operand_of(a), operand_of(b)
    wider = computation_dtype("dot", _dtype_of(left), _dtype_of(right))
    left, right = rounded(left, wider), rounded(right, wider)
    out_dtype = float16 if wider is float16 else None
    return handle_of(kept(math.dot(left, right, out_dtype=out_dtype), wider))


def kept(value: Any, dtype: DType) -> Any:
    """Round a product or a sum to the dtype of its operands; of integers it stays as it is."""
    return rounded(value, dtype) if dtype.is_floating() else value


def _dtype_of(value: Any) -> DType:
    if not isinstance(value, Value):
        found = f"{value!r} as an operand of tl.dot"
        raise current_program().error(found, "two matrices", "load them, or use * for numbers")
    dtype: DType = value.dtype
    return dtype


# -- along an axis ---------------------------------------------------------------------------------


def sum(x: Any, axis: int | None = None, keepdims: bool = True) -> TensorHandle:
    """Add up along an axis, or everything; the axis stays with extent 1 unless ``keepdims=False``.

    Narrow floats are added up in f32 and rounded once; integers below 32 bits give 32 bits.
    """
    value = operand_of(x)
    return handle_of(kept(reduction.sum(value, axis, keepdims), value.dtype))


def max(x: Any, axis: int | None = None, keepdims: bool = True) -> TensorHandle:
    """Return the greatest along an axis, or of all; the axis stays unless ``keepdims=False``."""
    value = operand_of(x)
    found = reduction.max(value, axis, keep_dims=keepdims)
    return handle_of(rounded(found, value.dtype))


def min(x: Any, axis: int | None = None, keepdims: bool = True) -> TensorHandle:
    """Return the least along an axis, or of all; the axis stays unless ``keepdims=False``."""
    value = operand_of(x)
    found = reduction.min(value, axis, keep_dims=keepdims)
    return handle_of(rounded(found, value.dtype))


def softmax(x: Any, axis: int = -1) -> TensorHandle:
    """Compute exp(x - max) over its sum along an axis, by default the last."""
    value = operand_of(x)
    return handle_of(rounded(reduction.softmax(value, axis), value.dtype))


# -- shapes and values out of nothing --------------------------------------------------------------


def trans(x: Any) -> TensorHandle:
    """Transpose the last two axes, values included; of a ref, no byte moves."""
    if isinstance(x, TensorHandle) and isinstance(x.held, Ref):
        ref = x.held
        *outer, rows, columns = ref.shape
        *steps, row_step, column_step = ref.strides
        kind = block_type(ref.dtype, (*outer, columns, rows))
        turned = Ref(ref.program, ref.base, kind, (*steps, column_step, row_step))
        return handle_of(turned, x.addr)
    return handle_of(shapes.trans(operand_of(x)))


def reshape(x: Any, shape: Any) -> TensorHandle:
    """Return the same elements, row by row, under another shape; -1 stands for what is left."""
    return handle_of(shapes.reshape(operand_of(x), shape))


def broadcast_to(x: Any, shape: Any) -> TensorHandle:
    """Spread over a shape."""
    return handle_of(shapes.broadcast_to(operand_of(x), shape))


def zeros(shape: Any, dtype: str = "f16") -> TensorHandle:
    """Make a tensor of zeros."""
    return full(shape, 0, dtype)


def full(shape: Any, value: Any, dtype: str = "f16") -> TensorHandle:
    """Make a tensor that holds one value everywhere."""
    return handle_of(creation.full(shape, operand_of(value), parse_dtype(dtype)))


def arange(start: int, end: int | None = None) -> TensorHandle:
    """Make the integers from start to end, or from 0 to start, as i32."""
    first, last = (0, start) if end is None else (start, end)
    return handle_of(creation.arange(first, last))


def cdiv(a: Any, b: Any) -> Any:
    """Return the quotient, rounded up."""
    return (a + (b - 1)) // b
