"""Ops made from what an author writes: by position or name, choices by name, any number."""

from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

from tilewright.attention.abs.source import author_line
from tilewright.attention.graph import Op
from tilewright.errors import OperandError

__all__ = ("make_op",)


def make_op(definition: type[Op], *args: Any, **kwargs: Any) -> Op:
    """Build an op from constructor arguments; raise `OperandError` with the line of a wrong one."""
    name, line = definition.__name__, author_line()
    try:
        return _checked(definition(*args, **kwargs))
    except TypeError as error:
        expected = f"{name}({', '.join(definition.__dataclass_fields__)})"
        fix = "see the op reference"
        where = f"{line}, {name}"
        raise OperandError(where, str(error), expected, fix, source=line, op=name) from None
    except OperandError as error:
        parts = (error.found, error.expected, error.fix)
        where = f"{line}, {error.where}"
        raise OperandError(where, *parts, source=line, op=name) from None


def _checked(op: Op) -> Op:
    """Return the op with whole numbers as floats where an attribute is a float.

    Refuses numbers, whole numbers and bools of another kind, so that equal ops have equal texts.
    """
    changes: dict[str, Any] = {}
    for item in fields(op):
        value = getattr(op, item.name)
        if item.type is float:
            changes[item.name] = float(_of_kind(op, item.name, value, Real, "a number"))
        elif item.type is int:
            changes[item.name] = int(_of_kind(op, item.name, value, Integral, "a whole number"))
        elif item.type is bool and not isinstance(value, bool):
            raise op.refuse("", f"{item.name}={value!r}", "True or False", f"change {item.name}")
    return replace(op, **changes) if changes else op


def _of_kind(op: Op, name: str, value: Any, kind: type, expected: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise op.refuse("", f"{name}={value!r}", expected, f"change {name}")
    return value
