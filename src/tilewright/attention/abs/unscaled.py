"""Op objects that take factors as Vortex's do, and refuse factors without effect."""

from numbers import Real
from typing import Any

from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import Op

__all__ = ("Unscaled",)


class Unscaled(vOp):
    """An op that takes ``alpha`` and ``beta`` as Vortex's does, and like it has no use for them.

    Only 1.0 is accepted: a factor without effect would be silently wrong for its author.
    """

    def build(self, alpha: Any = 1.0, beta: Any = 1.0) -> Op | None:
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, bool) or not isinstance(value, Real) or value != 1:
                name_of_op = type(self).__name__
                expected = f"nothing: {name_of_op} has no factors, in Vortex it ignores them"
                fix = f"write {name_of_op}(), and scale an operand with Add_Mul(beta=...)"
                raise self._error(f"{name}={value!r}", expected, fix)
        return super().build()
