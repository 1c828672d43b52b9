"""Topologies as plain values with the line of each key: from YAML, JSON or a mapping.

KernBench reads its files with ``yaml.safe_load``, so a word means here what it means there. A key
that stands twice in one section, which ``safe_load`` passes over, is refused.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import SpecError
from tilewright.machine.file.yaml_text import Place, spec_error_at
from tilewright.records import read_file

KeyPath = tuple[str, ...]
"""The keys that lead to a value. A tuple, since a key may have a dot in it."""

MAX_FILE_BYTES = 2**20
MAX_DEPTH = 32
MAX_KEYS = 100_000  # aliases can make more of them than a file has letters
MAPPING = "topology"  # name of a mapping that comes from no file
_MAP_TAG = "tag:yaml.org,2002:map"
_NUMBER_FIX = "correct the number, or put text in quotes"


@dataclass(frozen=True, slots=True)
class TopologyDocument:
    """A topology as it was given; ``lines`` is empty for a mapping."""

    source: str  # the file as it was named, or MAPPING
    spec: dict[str, Any]
    lines: Mapping[KeyPath, int]

    @property
    def name(self) -> str:
        """The name of the file, without its directory."""
        return os.path.basename(self.source)

    def place_of(self, path: KeyPath) -> Place:
        """Return the line of a key, or of the innermost section around it that has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return Place(self.source, self.lines[path[:length]])
        return Place(self.source)


def load_topology_document(path: Path) -> TopologyDocument:
    """Read a file: JSON if its name ends with ``.json``, else YAML.

    A file that cannot be read or parsed is a SpecError; a parse error has line and column.
    """
    source = str(path)
    content = read_file(path, "a topology file", SpecError, most_bytes=MAX_FILE_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = _where(source, content[: error.start].decode("utf-8", "replace"))
        found = f"the byte 0x{content[error.start]:02x}, which is no UTF-8"
        raise SpecError(where, found, "text in UTF-8", "save the file as UTF-8") from error
    if path.suffix.lower() == ".json":
        return _json_document(text, source)
    return _yaml_document(text, source)


def topology_of_mapping(spec: Mapping[str, Any]) -> TopologyDocument:
    """Wrap a mapping that a program made; errors name its keys, without lines."""
    return TopologyDocument(MAPPING, dict(spec), {})


def _json_document(text: str, source: str) -> TopologyDocument:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{source} line {error.lineno} column {error.colno}"
        fix = "look for a missing comma, quote or bracket"
        raise SpecError(where, f"broken JSON ({error.msg})", "valid JSON", fix) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; a deep tree
        raise _too_much(source, error) from error
    # JSON is YAML as far as lines go, but for tabs between its words; text has none in it
    lines = _yaml_document(text.replace("\t", " "), source).lines
    return TopologyDocument(source, value, lines)


def _yaml_document(text: str, source: str) -> TopologyDocument:
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                fix = "write at least `system: {sips: {count: 1}}`"
                raise SpecError(source, "nothing but space and comments", "a mapping", fix)
            if node.tag != _MAP_TAG:
                place, found = Place(source, node.start_mark.line + 1), "a list or a single value"
                fix = "begin with a key, such as `system:`"
                raise spec_error_at(place, "", found, "a mapping of keys to values", fix)
            _check_repeats(node, source)
            value = loader.construct_document(node)
            return TopologyDocument(source, value, dict(_lines(node, (), source)))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, source) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise _too_much(source, error) from error


def _check_repeats(root: yaml.Node, source: str) -> None:
    """Refuse a key that stands twice in one section; merged keys (``<<``) do not count."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        if not isinstance(node, yaml.MappingNode):
            continue
        first: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            waiting.append(value)
            if not isinstance(key, yaml.ScalarNode):
                continue
            line, name = key.start_mark.line + 1, (key.tag, key.value)
            if name in first:
                found = f"the key a second time (first in line {first[name]})"
                place, fix = Place(source, line), "remove one of the two"
                raise spec_error_at(place, key.value, found, "each key once", fix)
            first[name] = line


def _lines(node: yaml.Node, path: KeyPath, source: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the line of every key below a node that the loader has constructed.

    By then the loader has put merged keys before a section's own, so the last one counts.
    """
    num_keys = 0
    waiting = [(node, path)]
    while waiting:
        section, above = waiting.pop()
        if not isinstance(section, yaml.MappingNode):
            continue
        for key, value in section.value:
            below = (*above, str(key.value))
            num_keys += 1
            if num_keys > MAX_KEYS or len(below) > MAX_DEPTH:
                expected = f"at most {MAX_KEYS} keys in {MAX_DEPTH} levels"
                raise SpecError(source, "a larger tree", expected, "write out what aliases repeat")
            yield below, key.start_mark.line + 1
            waiting.append((value, below))


def _syntax_error(error: yaml.YAMLError, text: str, source: str) -> SpecError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        where = f"{source} line {mark.line + 1} column {mark.column + 1}"
    else:  # a character that YAML does not have
        where = _where(source, text[: getattr(error, "position", 0)])
    words = [getattr(error, name, None) for name in ("context", "problem", "reason")]
    found = ", ".join(word for word in words if word) or str(error).splitlines()[0]
    fix = "look for a missing colon, quote or bracket, or a wrong indentation, there or above"
    return SpecError(where, f"broken YAML ({found})", "valid YAML", fix)


def _where(source: str, before: str) -> str:
    """Return the place behind a text, as line and column."""
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{source} line {line} column {column}"


def _too_much(source: str, error: Exception) -> SpecError:
    if isinstance(error, RecursionError):
        return SpecError(source, "a deeper tree", f"at most {MAX_DEPTH} levels", "flatten it")
    return SpecError(source, f"a value that is none ({error})", "numbers and text", _NUMBER_FIX)
