"""Expressions of ops on the inner axes of a page: reductions, products, layout."""

from dataclasses import replace
from typing import Any

from tilewright.attention.codegen.expression.elementwise import (
    EmitterTable,
    identity,
    number,
    written,
)
from tilewright.attention.codegen.expression.gather import MOVES, Block, regrouped
from tilewright.attention.codegen.expression.weighted import is_weighted, weighted_elements
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import Body, Operand
from tilewright.attention.graph import DType, Node, Op
from tilewright.attention.ops import layout, linear, page_axis, reduce

REDUCTIONS: dict[type[Op], str] = {
    reduce.Sum: "sum",
    reduce.Mean: "sum",
    reduce.L2Norm: "sum",
    reduce.Max: "max",
    reduce.Min: "min",
}
"""Functions of Triton that reduce."""


def _reduction(op: Any, body: Body, x: Operand) -> str:
    kind, dtype = REDUCTIONS[type(op)], x.type.dtype.computed
    in_float = isinstance(op, reduce.Mean | reduce.L2Norm)
    text = body.kept(x, op.dim, identity(kind, dtype), x.as_float() if in_float else x.name)
    if isinstance(op, reduce.L2Norm):
        return f"tl.sqrt_rn(tl.sum({text} * {text}, {op.dim}, keep_dims=True))"
    if dtype is DType.BOOL:
        return f"(tl.{kind}(({text}).to(tl.int32), {op.dim}, keep_dims=True) != 0)"
    found = f"tl.{kind}({text}, {op.dim}, keep_dims=True)"
    if not isinstance(op, reduce.Mean):
        return found
    if op.dim in x.type.token_axes and body.page_tokens is not None:
        return f"tl.div_rn({found}, tl.maximum({body.page_tokens}, 1).to(tl.float32))"
    return f"tl.div_rn({found}, {float(x.type.shape[op.dim - 1])!r})"


def _gemm(_op: Op, body: Body, x: Operand, y: Operand) -> str:
    """Sum y[s, a, k] * x[s, b, k] over k to out[s, a, b]: a sum of a block of four axes.

    Query heads are few in decoding, too few for the matrix units.
    """
    left, right = (body.kept(part, 2, "0") for part in (y, x))
    if x.is_float or y.is_float:
        left = left if y.is_float else f"({left}).to(tl.float32)"
        right = right if x.is_float else f"({right}).to(tl.float32)"
    if y.type.shape[0] == 1 and x.type.shape[0] == 1:
        return f"tl.sum({left} * {right}, 2, keep_dims=True)"
    return f"tl.sum(({left})[:, :, None, :] * ({right})[:, None, :, :], 3)"


def _interleaved(op: Any, body: Body, x: Operand) -> str:
    """Reduce neighbours on an axis of their own."""
    kinds = {reduce.MaxInterleave: "max", reduce.MinInterleave: "min"}
    reduction = kinds.get(type(op), "sum")
    fill = "0.0" if reduction == "sum" else identity(reduction, DType.FLOAT32)
    kept = body.kept(x, op.dim, fill)
    kept = kept if x.is_float else f"({kept}).to(tl.float32)"
    block = Block.of(x)
    if kept != x.name:
        block = block.named(body, kept, op.dim, block.size(op.dim))
    groups = regrouped(block, op.dim, op.k, fill, body)
    if isinstance(op, reduce.L2NormInterleave):
        return f"tl.sqrt_rn(tl.sum({groups} * {groups}, {op.dim + 1}))"
    result = f"tl.{reduction}({groups}, {op.dim + 1})"
    partial = op.dim in x.type.token_axes and body.page_tokens is not None
    start = f"{body.index(op.dim, block.size(op.dim) // op.k)} * {op.k}" if partial else ""
    if isinstance(op, reduce.MeanInterleave):
        count = f"{float(op.k)!r}"
        if partial:
            there = f"tl.minimum({body.page_tokens} - {start}, {op.k})"
            count = f"tl.maximum({there}, 1).to(tl.float32)"
        return f"tl.div_rn({result}, {count})"
    if partial and reduction != "sum":
        return f"tl.where({start} < {body.page_tokens}, {result}, 0.0)"
    return result


def _ranked(op: Any, x: Operand, body: Body) -> str:
    """Name what an order goes by: NaN and what is not there come last."""
    lowest = identity("max", x.type.dtype)
    text = body.kept(x, op.dim, lowest)
    if x.is_float:
        text = f"tl.where({x.name} == {x.name}, {text}, {lowest})"
    return body.set_new("ranked", text)


def _arg_max(op: reduce.ArgMax, body: Body, x: Operand) -> str:
    size = x.type.shape[op.dim - 1]
    ranked, index = _ranked(op, x, body), body.index(op.dim, size)
    is_largest = f"{ranked} == tl.max({ranked}, {op.dim}, keep_dims=True)"
    return f"tl.min(tl.where({is_largest}, {index}, {size}), {op.dim}, keep_dims=True)"


def _arg_top(op: reduce.ArgTop, body: Body, x: Operand) -> str:
    """Place each entry by the number of entries before it, by size and then by index."""
    size = x.type.shape[op.dim - 1]
    ranked = _ranked(op, x, body)
    here, there, mine_axes, other_axes = _ORDER_AXES[op.dim]
    mine, other, place = body.new_names("mine other place")
    body.add(f"""
        {mine} = tl.arange(0, {padded(size)}){mine_axes}
        {other} = tl.arange(0, {padded(size)}){other_axes}
    """)
    larger = f"{ranked}{there} > {ranked}{here}"
    equal = f"({ranked}{there} == {ranked}{here}) & ({other} < {mine})"
    before = f"(({larger}) | ({equal})) & ({other} < {size})"
    body.add(f"{place} = tl.sum(({before}).to(tl.int32), {op.dim + 1})")
    wanted = f"tl.arange(0, {padded(op.k)}){mine_axes}"
    hit = f"({place}{there} == {wanted}) & ({other} < {size})"
    return f"tl.sum(tl.where({hit}, {other}, 0), {op.dim + 1})"


_ORDER_AXES = {
    1: ("[:, :, None, :]", "[:, None, :, :]", "[None, :, None, None]", "[None, None, :, None]"),
    2: ("[:, :, :, None]", "[:, :, None, :]", "[None, None, :, None]", "[None, None, None, :]"),
}
"""By axis: an entry, those it is compared with, and the numbers of both."""


def _softmax(op: page_axis.Softmax, body: Body, x: Operand) -> str:
    scale = "" if op.scale == 1.0 else f" * {number(op.scale)}"
    scaled = body.kept(x, op.dim, 'float("-inf")', f"{x.as_float()}{scale}")
    logits, largest, weight, total = body.new_names("logits largest weight total")
    body.add(f"""
        {logits} = {scaled}
        {largest} = tl.max({logits}, {op.dim}, keep_dims=True)
        {weight} = tl.exp({logits} - tl.where({largest} == float("-inf"), 0.0, {largest}))
        {total} = tl.sum({weight}, {op.dim}, keep_dims=True)
    """)
    return f"tl.div_rn({weight}, tl.where({total} == 0.0, 1.0, {total}))"


def _cum_sum(op: page_axis.CumSum, body: Body, x: Operand) -> str:
    """Add up without padding; tokens that are not there count as what was computed from 0."""
    whole = replace(x, type=replace(x.type, token_axes=()))
    direction = ", reverse=True" if op.reverse else ""
    return f"tl.cumsum({body.kept(whole, op.dim, '0')}, {op.dim}{direction})"


def product_elements(node: Node) -> int:
    """Count the elements a page of the block that an op sums; 0 if it has none."""
    if is_weighted(node):
        return weighted_elements(node)
    match node.op:
        case linear.GeMM():
            x, y = node.inputs
            return y.type.shape[0] * x.type.num_elements
        case reduce.ArgTop(dim=dim):
            kind = node.inputs[0].type
            return kind.num_elements * kind.shape[dim - 1]
    return 0


def _mask_slice(op: layout.MaskSlice, body: Body, x: Operand) -> str:
    index = body.index(op.dim, x.type.shape[op.dim - 1])
    chosen = f"({index} >= {op.start}) & ({index} < {op.end})"
    return f"tl.where({chosen}, {op.alpha!r}, {op.beta!r}) + tl.zeros_like({x.as_float()})"


INNER: EmitterTable = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    linear.GeMM: _gemm,
    reduce.SumInterleave: _interleaved,
    reduce.MeanInterleave: _interleaved,
    reduce.MaxInterleave: _interleaved,
    reduce.MinInterleave: _interleaved,
    reduce.L2NormInterleave: _interleaved,
    layout.Transpose: written("tl.permute({x_name}, (0, 2, 1))"),
    layout.MaskSlice: _mask_slice,
    reduce.ArgMax: _arg_max,
    reduce.ArgTop: _arg_top,
    page_axis.Softmax: _softmax,
    page_axis.CumSum: _cum_sum,
    **MOVES,
}
