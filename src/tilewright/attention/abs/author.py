"""What an author of a flow wrote: the line of a call, and the arguments of an op."""

import sys
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from tilewright.attention.graph import Op
from tilewright.errors import OperandError

_PACKAGE = Path(__file__).parents[1]
_FLOWS = str(_PACKAGE / "flows")
_HERE = str(_PACKAGE)


def author_line() -> str:
    """Return file and line of the nearest caller outside the op library: "quest.py:31".

    Ready flows count as authors.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _is_library(filename: str) -> bool:
    inside = filename.startswith(_HERE) and not filename.startswith(_FLOWS)
    return inside or filename.startswith("<frozen")


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
