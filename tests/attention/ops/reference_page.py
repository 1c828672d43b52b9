"""The op reference, ``docs/ops.md``, from the definitions."""

import inspect
from dataclasses import MISSING, fields
from enum import Enum

from tests.attention.ops.example import EXAMPLE_GEOMETRY, EXAMPLES, OP_GROUPS, Example, ops_of
from tilewright.attention.graph import Op, Side

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
    base = next(kind for kind in op.__mro__[1:] if not kind.__name__.startswith("_"))
    return base.__doc__ or "" if base.__module__ == op.__module__ else ""


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
