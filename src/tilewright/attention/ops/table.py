"""All ops by name: what the text form, the op reference and the executors go by."""

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from tilewright.attention.graph import Op
from tilewright.attention.ops import (
    binary,
    choose,
    compare,
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

OP_GROUPS: Mapping[str, tuple[Example, ...]] = MappingProxyType(
    {
        "Sources": leaf.EXAMPLES,
        "Position, age and length": position.EXAMPLES,
        "Feedback from attention": leaf.EXAMPLES_OF_ATTENTION,
        "Products": linear.EXAMPLES,
        "Reductions": reduce.EXAMPLES,
        "Reductions of neighbours": reduce.EXAMPLES_OF_NEIGHBOURS,
        "Element-wise, two operands": binary.EXAMPLES,
        "Element-wise, one operand": unary.EXAMPLES,
        "Comparisons and masks": compare.EXAMPLES,
        "Choice": choose.EXAMPLES,
        "Layout": layout.EXAMPLES,
        "Along the page axis": page_axis.EXAMPLES,
        "Selections": selection.EXAMPLES,
    }
)
"""Heading of the op reference, and examples of the ops that stand below it."""


def build_table(ops: Iterable[type[Op]]) -> Mapping[str, type[Op]]:
    table: dict[str, type[Op]] = {}
    for op in ops:
        if op.__name__ in table:
            raise RegistryError("ops", f"two {op.__name__!r}", "one owner", "rename one")
        table[op.__name__] = op
    return MappingProxyType(table)


def ops_of(examples: Iterable[Example]) -> list[type[Op]]:
    """Return the ops of some examples, in their order."""
    return list(dict.fromkeys(type(example.op) for example in examples))


EXAMPLES: tuple[Example, ...] = tuple(chain.from_iterable(OP_GROUPS.values()))
OPS = build_table(ops_of(EXAMPLES))
