"""The table of all ops, by name and as the page ``docs/ops.md``."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from itertools import chain
from types import MappingProxyType

from tilewright.attention.graph import Op, Side
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
from tilewright.attention.ops.example import EXAMPLE_GEOMETRY, Example
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


_SIZES = EXAMPLE_GEOMETRY
_HEAD = f"""# Ops

What a flow can say, generated from the definitions in `tilewright.attention.ops`. Op objects of the
same names are in `tilewright.attention.indexer` and `tilewright.attention.cache`; values have infix
and method forms of the most common ones.

A value has one entry per row (BATCHED, `1`) or per page (RAGGED, `S`), and two inner axes. A *row*
is a request and a KV head; a *field* (PAGED) is kept for each page. *Middle* means the pages of a
row without the reserved first and last ones. In the examples a page has {_SIZES.page_size} tokens,
keys are {_SIZES.key_dim} wide, and {_SIZES.query_heads} query heads share a KV head.

Every result is float32, int32 or bool, whatever its operands are; values are rounded where a field
is written and where `Cast` says so, nowhere else.
"""


def op_reference() -> str:
    """Return the page ``docs/ops.md``; the same definitions give the same text."""
    parts = [_HEAD]
    for title, examples in OP_GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(op) for op in sorted(ops_of(examples), key=lambda op: op.__name__)]
    return "\n".join(parts)


def _entry(op: type[Op]) -> str:
    lines = [f"### {op.__name__}", "", f"`{_signature(op)}`{_side(op)}", ""]
    text = inspect.cleandoc(op.__doc__ or "")
    shared = inspect.cleandoc(_shared_text(op))
    lines += [text, *(["", shared] if shared else []), ""]
    lines += [f"- `{_example(item)}`" for item in EXAMPLES if type(item.op) is op]
    return "\n".join([*lines, ""])


def _shared_text(op: type[Op]) -> str:
    """Return what the base in the op's own module says for all of its kind."""
    base = op.__mro__[1]
    is_kind = base.__module__ == op.__module__ and not base.__name__.startswith("_")
    return base.__doc__ or "" if is_kind else ""


def _signature(op: type[Op]) -> str:
    attributes = []
    for item in fields(op):
        default = "" if item.default is MISSING else f"={_literal(item.default)}"
        attributes.append(f"{item.name}{default}")
    return f"{op.__name__}({', '.join(attributes)})({', '.join(op.operands)})"


def _side(op: type[Op]) -> str:
    if op.sides == frozenset(Side):
        return ""
    (only,) = op.sides
    return f", {only} side only"


def _example(example: Example) -> str:
    pairs = [f"{name}={_literal(value)}" for name, value in example.op.attributes().items()]
    operands = ", ".join(map(str, example.inputs))
    return f"{example.op.name}({', '.join(pairs)})({operands}) -> {example.result()}"


def _literal(value: object) -> str:
    return repr(value.value) if isinstance(value, Enum) else repr(value)
