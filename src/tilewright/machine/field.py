"""The values of a machine file by their paths, as ``--set`` names them."""

from collections.abc import Mapping
from typing import Any

from tilewright.machine.spec import MachineSpec

Scalar = str | int | float | bool | None

SEPARATOR = ", "
LISTS = frozenset(
    {"cube.hbm.address_map", "cube.m_cpu_position_um", "cube.sram_position_um"}
)  # fields whose value is a list, kept as one text


def flat_fields(spec: MachineSpec) -> dict[str, Scalar]:
    """Return every value of a machine by its path.

    >>> from tilewright.machine.parse import parse_machine
    >>> flat_fields(parse_machine("ahbm"))["cube.hbm.refresh.kind"]
    'all_bank'
    """
    found: dict[str, Scalar] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(f"{path}.{key}" if path else str(key), inner)
        elif isinstance(value, list):
            found[path] = SEPARATOR.join(map(str, value))
        else:
            found[path] = value

    walk("", spec.model_dump(mode="json"))
    return found


def spec_of_fields(fields: Mapping[str, Scalar]) -> MachineSpec:
    """Return the machine that has these fields: the inverse of ``flat_fields``.

    Imports no block of the user's. Raises ``pydantic.ValidationError`` for values that a machine
    file may not have.
    """
    tree: dict[str, Any] = {}
    for path, value in fields.items():
        *sections, name = path.split(".")
        section = tree
        for each in sections:
            section = section.setdefault(each, {})
        section[name] = _items(value) if path in LISTS and isinstance(value, str) else value
    return MachineSpec.model_validate(tree)


def _items(text: str) -> tuple[str | int, ...]:
    return tuple(int(item) if item.isdecimal() else item for item in text.split(SEPARATOR))
