"""Ops made from what an author writes: by position or name, choices by name, any number."""

from dataclasses import fields, replace
from typing import Any

from tilewright.attention.abs.source import author_line
from tilewright.attention.graph import Op
from tilewright.errors import OperandError

__all__ = ("make_op",)


def make_op(definition: type[Op], *args: Any, **kwargs: Any) -> Op:
    """An op from constructor arguments; a wrong one is refused with its line."""
    name, line = definition.__name__, author_line()
    try:
        return _with_floats(definition(*args, **kwargs))
    except TypeError as error:
        expected = f"{name}({', '.join(definition.__dataclass_fields__)})"
        fix = "see the op reference"
        where = f"{line}, {name}"
        raise OperandError(where, str(error), expected, fix, source=line, op=name) from None
    except OperandError as error:
        parts = (error.found, error.expected, error.fix)
        where = f"{line}, {error.where}"
        raise OperandError(where, *parts, source=line, op=name) from None


def _with_floats(op: Op) -> Op:
    """Whole numbers where an attribute is a float, so that equal ops have equal texts."""
    changes: dict[str, Any] = {
        item.name: float(value)
        for item in fields(op)
        if item.type is float and isinstance(value := getattr(op, item.name), int)
    }
    return replace(op, **changes) if changes else op
