"""What an author of a flow wrote: the line of a call, and the arguments of an op."""

import sys
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast

from tilewright.attention.graph import Op
from tilewright.errors import OperandError

_PACKAGE = Path(__file__).parents[1]
_FLOWS = str(_PACKAGE / "flows")
_HERE = str(_PACKAGE)
_NUMBERS: dict[Any, tuple[type, str]] = {
    float: (Real, "a number"),
    int: (Integral, "a whole number"),
    bool: (bool, "True or False"),
}


def author_line() -> str:
    """Return file and line of the nearest caller outside the op library: "quest.py:31".

    Ready flows count as authors.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        is_library(frame.f_code.co_filename) or frame.f_code.co_filename.startswith("<frozen")
    ):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def is_library(filename: str) -> bool:
    """Return whether a file is of the op library; those of ready flows are of authors."""
    return filename.startswith(_HERE) and not filename.startswith(_FLOWS)


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
        value, wanted = getattr(op, item.name), cast(Any, item.type)
        if wanted not in _NUMBERS:
            continue
        kind, expected = _NUMBERS[wanted]
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise op.refuse("", f"{item.name}={value!r}", expected, f"change {item.name}")
        changes[item.name] = wanted(value)
    return replace(op, **changes) if changes else op
