"""Expressions of ops that look at one element at a time."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tilewright.attention.codegen.expression.memory import integer_range, rounded_float
from tilewright.attention.codegen.source.builder import Body, Operand
from tilewright.attention.graph import DType, Op
from tilewright.attention.ops import binary, choose, compare, leaf, selection, unary
from tilewright.attention.ops.rule import MASKED

Emitter: TypeAlias = Callable[..., str]
"""From an op, the body and the operands to the expression of the result."""
EmitterTable: TypeAlias = dict[type[Op], Emitter]


def number(value: float) -> str:
    """Return a literal that Triton reads as the same number.

    >>> number(0.5), number(-math.inf)
    ('0.5', 'float("-inf")')
    """
    return repr(float(value)) if math.isfinite(value) else f'float("{value}")'


_IDENTITIES = {
    "max": {DType.FLOAT32: 'float("-inf")', DType.INT32: "-2147483648", DType.BOOL: "0"},
    "min": {DType.FLOAT32: 'float("inf")', DType.INT32: "2147483647", DType.BOOL: "1"},
}


def identity(reduction: str, dtype: DType) -> str:
    """Return what changes no sum, maximum or minimum."""
    return "0" if reduction == "sum" else _IDENTITIES[reduction][dtype.computed]


def _both(*operands: Operand) -> list[str]:
    """Return operands as int32 if all are integers, else all as float32."""
    is_float = any(item.is_float for item in operands)
    return [item.as_float() if is_float else item.name for item in operands]


def written(template: str) -> Emitter:
    """Make an emitter from the text of its expression.

    ``{x}`` and ``{y}`` are in one type, int32 if both are integers; ``{x_float}`` and ``{y_float}``
    are in float32, ``{x_name}`` and ``{y_name}`` as they are. ``{scaled}`` is beta * x + alpha.
    Attributes of the op have their names.
    """

    def emit(op: Any, _body: Body, *operands: Operand) -> str:
        given = {
            name: number(value)
            for name, value in op.attributes().items()
            if isinstance(value, float | int)
        }
        for letter, operand, text in zip("xy", operands, _both(*operands), strict=False):
            given[letter] = text
            given[f"{letter}_name"], given[f"{letter}_float"] = operand.name, operand.as_float()
        is_float = any(item.is_float for item in operands)
        given["propagate"] = ", propagate_nan=tl.PropagateNan.ALL" if is_float else ""
        given["scaled"] = given["x_float"]
        if getattr(op, "beta", 1.0) != 1.0:
            given["scaled"] += f" * {given['beta']}"
        if getattr(op, "alpha", 0.0) != 0.0:
            given["scaled"] += f" + {given['alpha']}"
        return template.format(**given)

    return emit


def _add(op: binary.Add, _body: Body, x: Operand, y: Operand) -> str:
    terms = _both(x, y)
    for place, factor in enumerate((op.alpha, op.beta)):
        if factor != 1.0:
            literal = number(factor) if x.is_float or y.is_float else str(int(factor))
            terms[place] += f" * {literal}"
    return " + ".join(terms)


def _divide_integers(op: Op, body: Body, x: Operand, y: Operand) -> str:
    """Emit the remainder with the sign of y, or what is left without it, divided exactly.

    Python and GPUs differ about ``%`` of a negative number; here it never meets one.
    """
    divisor, size, low, rest = body.new_names("divisor modulus low rest")
    body.add(f"""
        {divisor} = tl.where({y.name} == 0, 1, {y.name}).to(tl.int64)
        {size} = tl.abs({divisor})
        {low} = {x.name}.to(tl.int64) + ({size} << 31)  # not below 0
        {rest} = {low} % {size}
        {rest} = tl.where(({divisor} < 0) & ({rest} > 0), {rest} + {divisor}, {rest})
    """)
    found = rest
    if isinstance(op, binary.FloorDivide):
        found = f"({x.name}.to(tl.int64) - {rest}) // {divisor}"
    return f"tl.where({y.name} == 0, 0, {found}).to(tl.int32)"


def _cast_to_integer(dtype: DType, x: Operand, body: Body) -> str:
    """Round towards zero and into the range; NaN, which compares to nothing, becomes 0."""
    low, high = integer_range(dtype)
    if not x.is_float:
        whole = f"{x.name}.to(tl.int32)"
        return whole if dtype is DType.INT32 else f"tl.minimum(tl.maximum({whole}, {low}), {high})"
    inside = body.set_new("inside", f"({x.name} > {low - 1}.0) & ({x.name} < {high + 1}.0)")
    whole = f"tl.where({inside}, {x.name}, 0.0).to(tl.int32)"
    above = f"tl.where({x.name} >= {high + 1}.0, {high}, {whole})"
    return f"tl.where({x.name} <= {low - 1}.0, {low}, {above})"


def _cast(op: unary.Cast, body: Body, x: Operand) -> str:
    """Round to a narrow type and back, which keeps what the narrow type can hold."""
    if op.dtype.is_integer:
        return _cast_to_integer(op.dtype, x, body)
    if op.dtype is DType.BOOL:
        return x.name if x.type.dtype is DType.BOOL else f"{x.name} != 0"
    if op.dtype is DType.FLOAT32 or x.type.dtype is op.dtype:
        return f"{x.name}.to(tl.float32)"
    return rounded_float(x.as_float(), op.dtype)


def _pow(_op: Op, body: Body, *operands: Operand) -> str:
    """Raise by logarithms in float64, whose rounding is below that of the result."""
    x, y = (item.as_float() for item in operands)
    size, whole, odd = body.new_names("power whole odd")
    logarithm = f"tl.log(tl.abs(({x}).to(tl.float64)))"
    body.add(f"""
        {size} = tl.exp(({y}).to(tl.float64) * {logarithm}).to(tl.float32)
        {whole} = tl.floor({y}) == {y}
        {odd} = {whole} & (tl.floor({y} * 0.5) * 2.0 != {y})
    """)
    negative = f'tl.where({odd}, -{size}, tl.where({whole}, {size}, float("nan")))'
    signed = f"tl.where({x} < 0.0, {negative}, {size})"
    return f"tl.where(({y} == 0.0) | ({x} == 1.0), 1.0, {signed})"


def _pop_count(_op: Op, body: Body, x: Operand) -> str:
    """Count the bits of pairs, then fours, then bytes; a product adds the bytes up."""
    bits = body.new_name("bits")
    body.add(f"""
        {bits} = {x.name}.to(tl.int64) & 4294967295
        {bits} = {bits} - (({bits} >> 1) & 1431655765)
        {bits} = ({bits} & 858993459) + (({bits} >> 2) & 858993459)
        {bits} = ({bits} + ({bits} >> 4)) & 252645135
    """)
    return f"((({bits} * 16843009) >> 24) & 255).to(tl.int32)"


def _select(_op: Op, _body: Body, mask: Operand, *sides: Operand) -> str:
    return "tl.where({}, {}, {})".format(mask.name, *_both(*sides))


def _logic(sign: str) -> Emitter:
    return lambda _op, _body, *operands: f" {sign} ".join(item.name for item in operands)


def _constant(op: leaf.Constant, _body: Body) -> str:
    literal = number(op.value) if op.dtype.is_float else str(int(op.value))
    return f"tl.full((1, 1, 1), {literal}, tl.{'int1' if op.dtype is DType.BOOL else op.dtype})"


_RELATIONS: dict[str, tuple[type[Op], type[Op]]] = {
    "==": (compare.Equal, compare.WhereEqual),
    "!=": (compare.NotEqual, compare.WhereNotEqual),
    ">": (compare.Greater, compare.WhereGreater),
    ">=": (compare.GreaterEqual, compare.WhereGreaterEqual),
    "<": (compare.Less, compare.WhereLess),
    "<=": (compare.LessEqual, compare.WhereLessEqual),
}
"""A comparison and its additive mask by sign."""
_INSIDE = "({y_name} >= 0) & ({y_name} <= 31)"  # a shift by more bits is not defined
_LOGISTIC = "1.0 + tl.exp({x_float} * {beta} + {alpha})"

ELEMENTWISE: EmitterTable = {
    leaf.Constant: _constant,
    binary.Add: _add,
    binary.Multiply: written("{x} * {y}"),
    binary.Maximum: written("tl.maximum({x}, {y}{propagate})"),
    binary.Minimum: written("tl.minimum({x}, {y}{propagate})"),
    binary.Divide: written("tl.div_rn({x_float}, {y_float})"),
    binary.Pow: _pow,
    binary.FloorDivide: _divide_integers,
    binary.Remainder: _divide_integers,
    binary.BitAnd: written("{x} & {y}"),
    binary.BitOr: written("{x} | {y}"),
    binary.BitXor: written("{x} ^ {y}"),
    binary.ShiftLeft: written(
        f"tl.where({_INSIDE}, {{x_name}} << tl.where({_INSIDE}, {{y_name}}, 0), 0)"
    ),
    binary.ShiftRight: written(f"{{x_name}} >> tl.where({_INSIDE}, {{y_name}}, 31)"),
    unary.Relu: written("tl.where({x_float} >= {alpha}, {x_float}, {beta})"),
    unary.Sigmoid: written(f"tl.div_rn(1.0, {_LOGISTIC})"),
    unary.Silu: written(f"tl.div_rn({{x_float}}, {_LOGISTIC})"),
    unary.Add_Mul: written("{scaled}"),
    unary.Abs: written("tl.abs({scaled})"),
    unary.Log: written("tl.log({scaled})"),
    unary.Exp: written("tl.exp({scaled})"),
    unary.Sqrt: written("tl.sqrt_rn({x_float})"),
    unary.Rsqrt: written("tl.div_rn(1.0, tl.sqrt_rn({x_float}))"),
    unary.Sign: written(
        "tl.where({x_float} > 0.0, 1.0, tl.where({x_float} < 0.0, -1.0, {x_float}))"
    ),
    unary.Floor: written("tl.floor({x_float})"),
    unary.Clamp: written(
        "tl.where({x_float} < {low}, {low}, tl.where({x_float} > {high}, {high}, {x_float}))"
    ),
    unary.BitNot: written("~{x_name}"),
    unary.PopCount: _pop_count,
    unary.Cast: _cast,
    choose.Select: _select,
    selection.Union: _logic("|"),
    selection.Intersection: _logic("&"),
    selection.Complement: written("~{x_name}"),
    **{holds: written(f"{{x}} {sign} {{y}}") for sign, (holds, _) in _RELATIONS.items()},
    **{
        mask: written(f"tl.where({{x}} {sign} {{y}}, 0.0, {number(MASKED)})")
        for sign, (_, mask) in _RELATIONS.items()
    },
}
