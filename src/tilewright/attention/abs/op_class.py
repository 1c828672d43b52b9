"""Classes of op objects from the table of ops.

The class of an op derives from the base of its side. An op whose constructor or calls take other
than its definition has a base of its own. A base for one op alone names it as its ``definition``,
and has the text that authors read; other classes have the text of the definition.
"""

from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

from tilewright.attention.abs.author import make_op
from tilewright.attention.abs.op import vOp
from tilewright.attention.graph import Op, Side
from tilewright.attention.ops import binary, layout, linear, unary
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError

Bases = Mapping[type[Op], type[vOp]]


def op_classes(
    module: str,
    table: Mapping[str, type[Op]],
    side: Side,
    base: type[vOp],
    bases: Bases,
    *,
    without: Collection[type[Op]],
) -> dict[str, type[vOp]]:
    """Return an op object class for each op of a side by name, but for those in ``without``.

    A class derives from ``base`` and the base of its op in ``bases``, and belongs to ``module``.
    """
    return {
        name: _op_class(module, definition, base, bases.get(definition, base))
        for name, definition in sorted(table.items())
        if side in definition.sides and definition not in without
    }


def _op_class(module: str, definition: type[Op], base: type[vOp], own: type[vOp]) -> type[vOp]:
    text = own.__doc__ if own.definition is definition else definition.__doc__
    members = {"definition": definition, "__doc__": text, "__module__": module}
    return type(definition.__name__, (own,) if issubclass(own, base) else (own, base), members)


class _Unscaled(vOp):
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


class _ToDtype(vOp):
    """An op that takes an element type by any name that users know."""

    def build(self, dtype: object) -> Op:
        try:
            return make_op(unary.Cast, resolve_dtype(dtype))
        except SpecError as error:
            raise self._error(error.found, error.expected, error.fix) from None


class _OverAxes(vOp):
    """An op that takes one axis or several."""

    def build(self, dim: int | Iterable[int] = (1, 2)) -> Op | None:
        return super().build(tuple(dim) if isinstance(dim, Iterable) else (dim,))


class Resized(vOp):
    """``Reshape(-1, rows, columns)``: row-major, same number of elements; RAGGED or BATCHED."""

    definition = layout.Reshape

    def build(self, batch_dim: int, x2: int, y2: int) -> Op | None:
        if batch_dim != -1:
            raise self._error(f"batch_dim={batch_dim!r}", "-1", "the page axis is kept")
        return super().build(x2, y2)


SHARED_BASES: Bases = MappingProxyType(
    {
        binary.Multiply: _Unscaled,
        binary.Maximum: _Unscaled,
        binary.Minimum: _Unscaled,
        unary.Cast: _ToDtype,
        linear.Kron: _OverAxes,
        layout.Reshape: Resized,
    }
)
"""Bases of ops on both sides."""
