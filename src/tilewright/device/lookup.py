"""Finding a name in a table of the device, or refusing it with the names that come near."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from tilewright.errors import RegistryError

Entry = TypeVar("Entry")


def look_up(where: str, noun: str, name: object, table: Mapping[str, Entry]) -> Entry:
    """The entry of ``name``; ``noun`` says what the names of the table are.

    >>> look_up("sip0.cube0.pe0.vector", "op", "ad", {"add": 1, "mul": 4})
    Traceback (most recent call last):
    tilewright.errors.RegistryError: sip0.cube0.pe0.vector: found op 'ad', expected one of add, \
mul; did you mean 'add'?
    """
    if isinstance(name, str) and name in table:
        return table[name]
    near = get_close_matches(name, table, n=3) if isinstance(name, str) else []
    fix = "did you mean " + " or ".join(map(repr, near)) + "?" if near else f"use a known {noun}"
    raise RegistryError(where, f"{noun} {name!r}", "one of " + ", ".join(sorted(table)), fix)
