"""Functions of elements without options: ``tl.exp``, also as ``tl.extra.libdevice.exp``."""

from collections.abc import Callable
from typing import Any

from tilewright.language.executor import current_program
from tilewright.language.front import planned


def _function(name: str, num_operands: int) -> Callable[..., Any]:
    """An op without attributes."""

    def function(*values: Any) -> Any:
        program = current_program()
        if len(values) != num_operands:
            found = f"{len(values)} arguments of tl.{name}"
            raise program.error(found, f"{num_operands}", "correct the call")
        if num_operands == 1:
            return program.compute(name, (program.block(values[0]),))
        x, y = values
        return program.compute(name, (program.block(x, y, name), program.block(y, x, name)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of every element."
    return planned(function)


abs = _function("abs", 1)
acos = _function("acos", 1)
asin = _function("asin", 1)
atan = _function("atan", 1)
cbrt = _function("cbrt", 1)
ceil = _function("ceil", 1)
cos = _function("cos", 1)
cosh = _function("cosh", 1)
erf = _function("erf", 1)
erfc = _function("erfc", 1)
exp = _function("exp", 1)
exp10 = _function("exp10", 1)
exp2 = _function("exp2", 1)
expm1 = _function("expm1", 1)
floor = _function("floor", 1)
isfinited = _function("isfinited", 1)
isinf = _function("isinf", 1)
isnan = _function("isnan", 1)
log = _function("log", 1)
log10 = _function("log10", 1)
log1p = _function("log1p", 1)
log2 = _function("log2", 1)
logical_not = _function("logical_not", 1)
rint = _function("rint", 1)
round = _function("round", 1)
rsqrt = _function("rsqrt", 1)
sigmoid = _function("sigmoid", 1)
sin = _function("sin", 1)
sinh = _function("sinh", 1)
sqrt = _function("sqrt", 1)
sqrt_rn = _function("sqrt_rn", 1)
tan = _function("tan", 1)
tanh = _function("tanh", 1)
trunc = _function("trunc", 1)
atan2 = _function("atan2", 2)
copysign = _function("copysign", 2)
div_rn = _function("div_rn", 2)
hypot = _function("hypot", 2)
logical_and = _function("logical_and", 2)
logical_or = _function("logical_or", 2)
pow = _function("pow", 2)
umulhi = _function("umulhi", 2)


@planned
def fma(x: Any, y: Any, z: Any) -> Any:
    """x y + z, rounded once."""
    program = current_program()
    first = program.block(x, y)
    return program.compute("fma", (first, program.block(y, first), program.block(z, first)))
