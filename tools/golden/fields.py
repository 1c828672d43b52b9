"""The table of fields that were renamed or dropped since the results were recorded."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ("FieldTable", "digests", "read_table")


@dataclass(frozen=True, slots=True)
class FieldTable:
    """Paths of fields as ``launches[].last_pe``, and patterns of names in traces."""

    dropped: frozenset[str]  # paths that are not compared
    renamed: Mapping[str, str]  # path today: the field's name when the results were recorded
    texts: Mapping[str, str]  # pattern of a text today: its replacement

    def as_recorded(self, value: Any, path: str = "") -> Any:
        """Return a result with the names that it had when the results were recorded."""
        match value:
            case dict():
                return _gathered(
                    self._entry(path, name, each) for name, each in self._kept(path, value)
                )
            case list() | tuple():
                return [self.as_recorded(each, f"{path}[]") for each in value]
            case str():
                return self.text(value)
        return value

    def _kept(self, path: str, value: Mapping[str, Any]) -> list[tuple[str, Any]]:
        return [
            (name, each) for name, each in value.items() if _join(path, name) not in self.dropped
        ]

    def _entry(self, path: str, name: str, value: Any) -> tuple[str, Any]:
        inner = _join(path, name)
        return self.renamed.get(inner, self.text(name)), self.as_recorded(value, inner)

    def text(self, text: str) -> str:
        """Return a text with the names that it had when the results were recorded."""
        for pattern, replacement in self.texts.items():
            text = re.sub(pattern, replacement, text)
        return text


def read_table(file: Path) -> FieldTable:
    """Read the table from a TOML file."""
    content = tomllib.loads(file.read_text("utf-8"))
    return FieldTable(frozenset(content["dropped"]), content["renamed"], content["texts"])


def digests(result: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each field of a result."""
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for name, value in sorted(result.items())
    }


def _gathered(entries: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping; entries that have one name when names are made equal become a list."""
    found: dict[str, list[Any]] = {}
    for name, value in entries:
        found.setdefault(name, []).append(value)
    return {
        name: values[0] if len(values) == 1 else sorted(values, key=json.dumps)
        for name, values in found.items()
    }


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
