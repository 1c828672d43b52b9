"""All ops by name: what the text form, the op reference and the executors go by."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tilewright.attention.graph import Op
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
    feedback,
    interleave,
    layout,
    leaf,
    linear,
    page_axis,
    position,
    reduce,
    rope,
    selection,
    unary,
)
from tilewright.errors import RegistryError

__all__ = ("OPS", "OP_GROUPS", "build_table")

_BASES = (
    binary.Binary,
    binary.IntegerBinary,
    compare.AdditiveMask,
    compare.Comparison,
    interleave.InterleavedReduction,
    reduce.Reduction,
    selection.SelectionOp,
    unary.Unary,
)

OP_GROUPS = MappingProxyType(
    {
        "Sources": leaf,
        "Position, age and length": position,
        "Feedback from attention": feedback,
        "Products": linear,
        "Reductions": reduce,
        "Reductions of neighbours": interleave,
        "Element-wise, two operands": binary,
        "Element-wise, one operand": unary,
        "Comparisons and masks": compare,
        "Choice": choose,
        "Layout": layout,
        "Along the page axis": page_axis,
        "Rotary embedding": rope,
        "Selections": selection,
    }
)
"""Heading of the op reference, and the module whose ops stand below it."""


def build_table(ops: Iterable[type[Op]]) -> Mapping[str, type[Op]]:
    table: dict[str, type[Op]] = {}
    for op in ops:
        if op.__name__ in table:
            raise RegistryError("ops", f"two {op.__name__!r}", "one owner", "rename one")
        table[op.__name__] = op
    return MappingProxyType(table)


def ops_of(module: object) -> list[type[Op]]:
    """The ops that a module defines, by name, without the bases that they share."""
    public: tuple[str, ...] = getattr(module, "__all__", ())
    found = [getattr(module, name) for name in public]
    return [item for item in found if _is_op(item)]


def _is_op(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Op) and item not in _BASES


OPS = build_table(op for module in OP_GROUPS.values() for op in ops_of(module))
