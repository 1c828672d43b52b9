"""All ops by name: what the text form, the op reference and the executors go by."""

from collections.abc import Iterable, Mapping
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
from tilewright.errors import RegistryError


def build_table(ops: Iterable[type[Op]]) -> Mapping[str, type[Op]]:
    table: dict[str, type[Op]] = {}
    for op in ops:
        if op.__name__ in table:
            raise RegistryError("ops", f"two {op.__name__!r}", "one owner", "rename one")
        table[op.__name__] = op
    return MappingProxyType(table)


OPS = build_table(
    (
        *leaf.OPS,
        *position.OPS,
        *leaf.OPS_OF_ATTENTION,
        *linear.OPS,
        *reduce.OPS,
        *reduce.OPS_OF_NEIGHBOURS,
        *binary.OPS,
        *unary.OPS,
        *compare.OPS,
        *choose.OPS,
        *layout.OPS,
        *page_axis.OPS,
        *selection.OPS,
    )
)
