"""Expressions of ops on the inner axes of a page: reductions, products, layout."""

from typing import Any

from tilewright.attention.codegen.body import Body, NoTextError, Operand, padded
from tilewright.attention.codegen.elementwise import EmitterTable
from tilewright.attention.graph import DType
from tilewright.attention.ops import interleave, layout, linear, reduce

__all__ = ("INNER", "product_elements")

_LOWEST = {DType.FLOAT32: 'float("-inf")', DType.INT32: "-2147483648", DType.BOOL: "0"}
_HIGHEST = {DType.FLOAT32: 'float("inf")', DType.INT32: "2147483647", DType.BOOL: "1"}


def _sum(op: reduce.Sum, operands: tuple[Operand, ...], body: Body) -> str:
    (x,) = operands
    return f"tl.sum({body.kept(x, op.dim, '0')}, {op.dim}, keep_dims=True)"


def _entries(op: reduce.Mean, x: Operand, body: Body) -> str:
    """How many entries a mean is over; 1 for none, as their sum is 0 then."""
    if op.dim in x.type.token_axes and body.page_tokens is not None:
        return f"tl.maximum({body.page_tokens}, 1).to(tl.float32)"
    return f"{float(x.type.shape[op.dim - 1])!r}"


def _mean(op: reduce.Mean, operands: tuple[Operand, ...], body: Body) -> str:
    (x,) = operands
    total = f"tl.sum({_float_kept(op.dim, x, body)}, {op.dim}, keep_dims=True)"
    return f"tl.div_rn({total}, {_entries(op, x, body)})"


def _l2_norm(op: reduce.L2Norm, operands: tuple[Operand, ...], body: Body) -> str:
    (x,) = operands
    text = _float_kept(op.dim, x, body)
    return f"tl.sqrt_rn(tl.sum({text} * {text}, {op.dim}, keep_dims=True))"


def _float_kept(dim: int, x: Operand, body: Body) -> str:
    text = body.kept(x, dim, "0")
    return text if x.is_float else f"({text}).to(tl.float32)"


def _extreme(op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    (x,) = operands
    largest = isinstance(op, reduce.Max)
    dtype = x.type.dtype.computed
    text = body.kept(x, op.dim, (_LOWEST if largest else _HIGHEST)[dtype])
    if dtype is DType.BOOL:
        text = f"({text}).to(tl.int32)"
    result = f"tl.{'max' if largest else 'min'}({text}, {op.dim}, keep_dims=True)"
    return f"({result} != 0)" if dtype is DType.BOOL else result


def _gemm(_op: linear.GeMM, operands: tuple[Operand, ...], body: Body) -> str:
    """out[s, a, b] = sum over k of y[s, a, k] * x[s, b, k], as a sum of a block of four axes.

    Query heads are few in decoding, too few for the matrix units.
    """
    x, y = operands
    if len(y.type.shape) != 2:
        raise NoTextError("weights with an axis of heads")
    integers = not x.is_float and not y.is_float
    left, right = (
        body.kept(part, 2, "0")
        if integers or part.is_float
        else f"({body.kept(part, 2, '0')}).to(tl.float32)"
        for part in (y, x)
    )
    if y.type.shape[0] == 1 and x.type.shape[0] == 1:
        return f"tl.sum({left} * {right}, 2, keep_dims=True)"
    return f"tl.sum(({left})[:, :, None, :] * ({right})[:, None, :, :], 3)"


def _interleaved(op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    """Neighbours get an axis of their own, so their number must be a power of two."""
    (x,) = operands
    size = x.type.shape[op.dim - 1]
    if padded(size) != size or padded(op.k) != op.k:
        raise NoTextError("groups that would cross the padding")
    kinds = {interleave.MaxInterleave: "max", interleave.MinInterleave: "min"}
    reduction = kinds.get(type(op), "sum")
    fill = {"max": 'float("-inf")', "min": 'float("inf")', "sum": "0"}[reduction]
    text = body.kept(x, op.dim, fill)
    text = text if x.is_float else f"({text}).to(tl.float32)"
    others = [f"{x.name}.shape[{axis}]" for axis in (0, 1, 2)]
    others[op.dim : op.dim + 1] = [str(size // op.k), str(op.k)]
    groups = f"tl.reshape({text}, ({', '.join(others)}))"
    if isinstance(op, interleave.L2NormInterleave):
        return f"tl.sqrt_rn(tl.sum({groups} * {groups}, {op.dim + 1}))"
    result = f"tl.{reduction}({groups}, {op.dim + 1})"
    partial = op.dim in x.type.token_axes and body.page_tokens is not None
    start = f"{body.index(op.dim, size // op.k)} * {op.k}" if partial else ""
    if isinstance(op, interleave.MeanInterleave):
        count = f"{float(op.k)!r}"
        if partial:
            there = f"tl.minimum({body.page_tokens} - {start}, {op.k})"
            count = f"tl.maximum({there}, 1).to(tl.float32)"
        return f"tl.div_rn({result}, {count})"
    if partial and reduction != "sum":
        return f"tl.where({start} < {body.page_tokens}, {result}, 0.0)"
    return result


def product_elements(op: Any, operands: tuple[Operand, ...]) -> int:
    """Elements a page of the block that a product goes through before it is summed."""
    if not isinstance(op, linear.GeMM) or not operands:  # none: it was computed before
        return 0
    x, y = operands
    return y.type.shape[0] * x.type.num_elements


def _transpose(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    return f"tl.permute({operands[0].name}, (0, 2, 1))"


def _mask_slice(op: layout.MaskSlice, operands: tuple[Operand, ...], body: Body) -> str:
    (x,) = operands
    index = body.index(op.dim, x.type.shape[op.dim - 1])
    chosen = f"({index} >= {op.start}) & ({index} < {op.end})"
    return f"tl.where({chosen}, {op.alpha!r}, {op.beta!r}) + tl.zeros_like({x.as_float()})"


INNER: EmitterTable = {
    reduce.Sum: _sum,
    reduce.Mean: _mean,
    reduce.L2Norm: _l2_norm,
    reduce.Max: _extreme,
    reduce.Min: _extreme,
    linear.GeMM: _gemm,
    interleave.SumInterleave: _interleaved,
    interleave.MeanInterleave: _interleaved,
    interleave.MaxInterleave: _interleaved,
    interleave.MinInterleave: _interleaved,
    interleave.L2NormInterleave: _interleaved,
    layout.Transpose: _transpose,
    layout.MaskSlice: _mask_slice,
}
