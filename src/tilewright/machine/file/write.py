"""A machine as the text of a machine file that says every value, and reads back as the same."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from tilewright.errors import UnitError
from tilewright.machine.file.schema import KIND
from tilewright.machine.file.yaml_scalar import resolve_plain
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.field import Spec
from tilewright.units import (
    PS_PER_US,
    format_bytes,
    format_ps,
    format_rate,
    parse_bytes,
    parse_ps,
    parse_rate,
)

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./ -]*[A-Za-z0-9])?")
_HEADER = "# {name}: every value of the machine. A block without `impl` is the package's own.\n"


_UNITS: dict[str, tuple[Callable[[int], str], Callable[[str], int]]] = {
    "_bytes": (format_bytes, parse_bytes),
    "_ps": (format_ps, parse_ps),
    "_per_us": (partial(format_rate, elapsed_ps=PS_PER_US), parse_rate),
}


def machine_file_text(spec: MachineSpec) -> str:
    """A machine file that says everything and reads back as an equal spec."""
    header = _HEADER.format(name=" ".join(spec.name.split()))
    return header + "\n".join(_section_lines(spec, "")) + "\n"


def _section_lines(spec: Spec, indent: str) -> Iterator[str]:
    fields = type(spec).model_fields
    for name in sorted(fields, key=lambda name: name != KIND):  # which keys there are, it decides
        field, value = fields[name], getattr(spec, name)
        if (name == "impl" and value is None) or (name == "parameters" and not value):
            continue
        if isinstance(value, Spec):
            yield f"{indent}{name}:"
            yield from _section_lines(value, indent + "  ")
        else:
            line = f"{indent}{name}: {value_text(value, name, field)}"
            yield f"{line:<36} # {field.description}" if field.description else line


def value_text(value: object, name: str, field: FieldInfo) -> str:
    """Write the value of the field ``name`` as a machine file has it."""
    takes_text = any(isinstance(rule, BeforeValidator) for rule in field.metadata)
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() if takes_text:
            return quantity_text(value, name)
        case dict():
            pairs = (
                f"{word_text(key)}: {value_text(entry, '', field)}" for key, entry in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case tuple():
            return "[" + ", ".join(value_text(entry, "", field) for entry in value) + "]"
        case _:
            return word_text(value) if isinstance(value, str) else str(value)


def quantity_text(value: int, name: str) -> str:
    """Write a value of the field ``name``: with a unit where that is exact, else the bare integer.

    >>> quantity_text(128_000, "bytes_per_us"), quantity_text(1_234_567, "latency_ps")
    ('128 GB/s', '1234567')
    """
    for ending, (write, read) in _UNITS.items():
        if name.endswith(ending):
            text = write(value)
            try:
                return text if read(text) == value else str(value)
            except UnitError:  # rounded to a part of a byte
                return str(value)
    return str(value)


def word_text(text: str) -> str:
    """Write text, in quotes unless YAML reads it back as the same text without them."""
    is_plain = _PLAIN.fullmatch(text) and resolve_plain(text) == text
    return text if is_plain else json.dumps(text, ensure_ascii=False)
