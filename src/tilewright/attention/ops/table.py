"""All ops by name: what the text form, the op reference and the executors go by."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType

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
    selection,
    unary,
)
from tilewright.attention.ops.example import Example
from tilewright.errors import RegistryError

OP_GROUPS: Mapping[str, ModuleType] = MappingProxyType(
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
        "Selections": selection,
    }
)
"""Heading of the op reference, and the module whose ops stand below it: those of ``EXAMPLES``."""


def build_table(ops: Iterable[type[Op]]) -> Mapping[str, type[Op]]:
    table: dict[str, type[Op]] = {}
    for op in ops:
        if op.__name__ in table:
            raise RegistryError("ops", f"two {op.__name__!r}", "one owner", "rename one")
        table[op.__name__] = op
    return MappingProxyType(table)


def ops_of(module: ModuleType) -> list[type[Op]]:
    """Return the ops that a module has examples of, in their order."""
    return list(dict.fromkeys(type(example.op) for example in module.EXAMPLES))


OPS = build_table(op for module in OP_GROUPS.values() for op in ops_of(module))
EXAMPLES: tuple[Example, ...] = tuple(
    example for module in OP_GROUPS.values() for example in module.EXAMPLES
)
