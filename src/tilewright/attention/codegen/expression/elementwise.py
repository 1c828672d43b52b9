"""Expressions of ops that look at one element at a time."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tilewright.attention.codegen.expression.stored import ROUNDINGS
from tilewright.attention.codegen.source.builder import Body, Operand, tl_dtype
from tilewright.attention.graph import DType, Op
from tilewright.attention.ops import binary, choose, compare, leaf, selection, unary
from tilewright.attention.ops.rule import MASKED

Emitter: TypeAlias = Callable[[Any, tuple[Operand, ...], Body], str]
"""From an op and its operands to the expression of its result."""
EmitterTable: TypeAlias = dict[type[Op], Emitter]

_RELATIONS: dict[type[compare.Comparison], str] = {
    compare.Equal: "==",
    compare.NotEqual: "!=",
    compare.Greater: ">",
    compare.GreaterEqual: ">=",
    compare.Less: "<",
    compare.LessEqual: "<=",
    compare.WhereEqual: "==",
    compare.WhereNotEqual: "!=",
    compare.WhereGreater: ">",
    compare.WhereGreaterEqual: ">=",
    compare.WhereLess: "<",
    compare.WhereLessEqual: "<=",
}


def number(value: float) -> str:
    """Return a literal that Triton reads as the same number.

    >>> number(0.5), number(-math.inf)
    ('0.5', 'float("-inf")')
    """
    return repr(float(value)) if math.isfinite(value) else f'float("{value}")'


def _both(operands: tuple[Operand, ...]) -> tuple[str, str]:
    """Return both as int32 if both are integers, else both as float32."""
    x, y = operands
    if not x.is_float and not y.is_float:
        return x.name, y.name
    return x.as_float(), y.as_float()


def _scaled(op: Any, x: Operand) -> str:
    text = x.as_float()
    if op.beta != 1.0:
        text = f"{text} * {number(op.beta)}"
    return text if op.alpha == 0.0 else f"{text} + {number(op.alpha)}"


def _logistic(op: Any, x: Operand) -> str:
    return f"1.0 + tl.exp({x.as_float()} * {number(op.beta)} + {number(op.alpha)})"


def _add(op: binary.Add, operands: tuple[Operand, ...], _body: Body) -> str:
    integers = not any(item.is_float for item in operands)
    terms = []
    for text, factor in zip(_both(operands), (op.alpha, op.beta), strict=True):
        literal = str(int(factor)) if integers else number(factor)
        terms.append(text if factor == 1.0 else f"{text} * {literal}")
    return " + ".join(terms)


def _infix(sign: str) -> Emitter:
    def emit(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
        return f" {sign} ".join(_both(operands))

    return emit


def _extreme(function: str) -> Emitter:
    def emit(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
        x, y = _both(operands)
        if any(item.is_float for item in operands):
            return f"{function}({x}, {y}, propagate_nan=tl.PropagateNan.ALL)"
        return f"{function}({x}, {y})"

    return emit


def _divide(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    x, y = operands
    return f"tl.div_rn({x.as_float()}, {y.as_float()})"


def _function(template: str) -> Emitter:
    """Make an emitter of one operand in float32: ``{scaled}`` is beta * x + alpha, ``{x}`` is x."""

    def emit(op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
        (x,) = operands
        if "{x}" in template:
            return template.format(x=x.as_float())
        return template.format(scaled=_scaled(op, x))

    return emit


def _sigmoid(op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    return f"tl.div_rn(1.0, {_logistic(op, operands[0])})"


def _silu(op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    (x,) = operands
    return f"tl.div_rn({x.as_float()}, {_logistic(op, x)})"


def _relu(op: unary.Relu, operands: tuple[Operand, ...], _body: Body) -> str:
    x = operands[0].as_float()
    return f"tl.where({x} >= {number(op.alpha)}, {x}, {number(op.beta)})"


def _sign(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    x = operands[0].as_float()
    return f"tl.where({x} > 0.0, 1.0, tl.where({x} < 0.0, -1.0, {x}))"


def _clamp(op: unary.Clamp, operands: tuple[Operand, ...], _body: Body) -> str:
    x, low, high = operands[0].as_float(), number(op.low), number(op.high)
    return f"tl.where({x} < {low}, {low}, tl.where({x} > {high}, {high}, {x}))"


def _shift_left(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    x, y = (item.name for item in operands)
    inside = f"({y} >= 0) & ({y} <= 31)"
    return f"tl.where({inside}, {x} << tl.where({inside}, {y}, 0), 0)"


def _shift_right(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    x, y = (item.name for item in operands)
    return f"{x} >> tl.where(({y} >= 0) & ({y} <= 31), {y}, 31)"


def _least_remainder(operands: tuple[Operand, ...], body: Body) -> tuple[str, str]:
    """Name y with 1 in place of 0, and a remainder with its sign, both int64.

    Python and GPUs differ about ``%`` of a negative number; here it never meets one.
    """
    x, y = (item.name for item in operands)
    divisor, size = body.new_name("divisor"), body.new_name("modulus")
    low, found = body.new_name("low"), body.new_name("rest")
    body.add(f"{divisor} = tl.where({y} == 0, 1, {y}).to(tl.int64)")
    body.add(f"{size} = tl.abs({divisor})")
    body.add(f"{low} = {x}.to(tl.int64) + ({size} << 31)  # not below 0")
    body.add(f"{found} = {low} % {size}")
    signed = f"tl.where(({divisor} < 0) & ({found} > 0), {found} + {divisor}, {found})"
    body.add(f"{found} = {signed}")
    return divisor, found


def _remainder(_op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    _, rest = _least_remainder(operands, body)
    return f"tl.where({operands[1].name} == 0, 0, {rest}).to(tl.int32)"


def _floor_divide(_op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    """Divide what is left without the remainder: exactly, so that no rounding is asked for."""
    divisor, rest = _least_remainder(operands, body)
    exact = f"({operands[0].name}.to(tl.int64) - {rest}) // {divisor}"
    return f"tl.where({operands[1].name} == 0, 0, {exact}).to(tl.int32)"


def _cast_to_integer(dtype: DType, x: Operand, body: Body) -> str:
    """Round towards zero and into the range; NaN, which compares to nothing, becomes 0."""
    low, high = -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    if not x.is_float:
        whole = f"{x.name}.to(tl.int32)"
        return whole if dtype is DType.INT32 else f"tl.minimum(tl.maximum({whole}, {low}), {high})"
    inside = body.new_name("inside")
    body.add(f"{inside} = ({x.name} > {low - 1}.0) & ({x.name} < {high + 1}.0)")
    whole = f"tl.where({inside}, {x.name}, 0.0).to(tl.int32)"
    above = f"tl.where({x.name} >= {high + 1}.0, {high}, {whole})"
    return f"tl.where({x.name} <= {low - 1}.0, {low}, {above})"


def _cast(op: unary.Cast, operands: tuple[Operand, ...], body: Body) -> str:
    """Round to a narrow type and back, which keeps what the narrow type can hold."""
    (x,) = operands
    if op.dtype.is_integer:
        return _cast_to_integer(op.dtype, x, body)
    if op.dtype is DType.BOOL:
        return x.name if x.type.dtype is DType.BOOL else f"{x.name} != 0"
    if op.dtype is DType.FLOAT32 or x.type.dtype is op.dtype:
        return f"{x.name}.to({tl_dtype(op.dtype)})"
    if op.dtype in (DType.FLOAT16, DType.BFLOAT16):
        return f"{x.as_float()}.to(tl.{op.dtype}).to(tl.float32)"
    return f"{ROUNDINGS[op.dtype]}({x.as_float()})"


def _pow(_op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    """Raise by logarithms in float64, whose rounding is below that of the result."""
    x, y = (item.as_float() for item in operands)
    size, whole, odd = (body.new_name(name) for name in ("power", "whole", "odd"))
    logarithm = f"tl.log(tl.abs(({x}).to(tl.float64)))"
    body.add(f"{size} = tl.exp(({y}).to(tl.float64) * {logarithm}).to(tl.float32)")
    body.add(f"{whole} = tl.floor({y}) == {y}")
    body.add(f"{odd} = {whole} & (tl.floor({y} * 0.5) * 2.0 != {y})")
    negative = f'tl.where({odd}, -{size}, tl.where({whole}, {size}, float("nan")))'
    signed = f"tl.where({x} < 0.0, {negative}, {size})"
    return f"tl.where(({y} == 0.0) | ({x} == 1.0), 1.0, {signed})"


def _pop_count(_op: Any, operands: tuple[Operand, ...], body: Body) -> str:
    """Count the bits of pairs, then fours, then bytes; a product adds the bytes up."""
    bits = body.new_name("bits")
    body.add(f"{bits} = {operands[0].name}.to(tl.int64) & 4294967295")
    body.add(f"{bits} = {bits} - (({bits} >> 1) & 1431655765)")
    body.add(f"{bits} = ({bits} & 858993459) + (({bits} >> 2) & 858993459)")
    body.add(f"{bits} = ({bits} + ({bits} >> 4)) & 252645135")
    return f"((({bits} * 16843009) >> 24) & 255).to(tl.int32)"


def _select(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
    mask, x, y = operands
    if DType.BOOL in (x.type.dtype, y.type.dtype):
        return f"tl.where({mask.name}, {x.name}, {y.name})"
    return "tl.where({}, {}, {})".format(mask.name, *_both((x, y)))


def _relation(op: compare.Comparison, operands: tuple[Operand, ...], _body: Body) -> str:
    holds = f" {_RELATIONS[type(op)]} ".join(_both(operands))
    if isinstance(op, compare.AdditiveMask):
        return f"tl.where({holds}, 0.0, {number(MASKED)})"
    return holds


def _logic(sign: str) -> Emitter:
    def emit(_op: Any, operands: tuple[Operand, ...], _body: Body) -> str:
        return f" {sign} ".join(item.name for item in operands)

    return emit


def _constant(op: leaf.Constant, _operands: tuple[Operand, ...], _body: Body) -> str:
    literal = number(op.value) if op.dtype.is_float else str(int(op.value))
    return f"tl.full((1, 1, 1), {literal}, {tl_dtype(op.dtype)})"


ELEMENTWISE: EmitterTable = {
    leaf.Constant: _constant,
    binary.Add: _add,
    binary.Multiply: _infix("*"),
    binary.Maximum: _extreme("tl.maximum"),
    binary.Minimum: _extreme("tl.minimum"),
    binary.Divide: _divide,
    binary.Pow: _pow,
    binary.FloorDivide: _floor_divide,
    binary.Remainder: _remainder,
    binary.BitAnd: _infix("&"),
    binary.BitOr: _infix("|"),
    binary.BitXor: _infix("^"),
    binary.ShiftLeft: _shift_left,
    binary.ShiftRight: _shift_right,
    unary.Relu: _relu,
    unary.Sigmoid: _sigmoid,
    unary.Silu: _silu,
    unary.Add_Mul: _function("{scaled}"),
    unary.Abs: _function("tl.abs({scaled})"),
    unary.Log: _function("tl.log({scaled})"),
    unary.Exp: _function("tl.exp({scaled})"),
    unary.Sqrt: _function("tl.sqrt_rn({x})"),
    unary.Rsqrt: _function("tl.div_rn(1.0, tl.sqrt_rn({x}))"),
    unary.Sign: _sign,
    unary.Floor: _function("tl.floor({x})"),
    unary.Clamp: _clamp,
    unary.BitNot: lambda _op, operands, _body: f"~{operands[0].name}",
    unary.PopCount: _pop_count,
    unary.Cast: _cast,
    choose.Select: _select,
    selection.Union: _logic("|"),
    selection.Intersection: _logic("&"),
    selection.Complement: lambda _op, operands, _body: f"~{operands[0].name}",
    **dict.fromkeys(_RELATIONS, _relation),
}
