"""YAML text to a tree whose keys and values know their file and line; no Python object is built.

A small, unambiguous part of YAML: mappings, lists, text, whole decimal numbers, true, false, null.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tilewright.errors import SpecError
from tilewright.machine.file.yaml_scalar import FORBIDDEN, Plain, Refusal, resolve_plain
from tilewright.records import read_file

MAX_FILE_BYTES = 2**20
MAX_DEPTH = 32  # of a tree; the deepest field of a machine is at 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a line of a file, or an option of the command line."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source} line {self.line}"

    def further(self, num_lines: int) -> "Place":
        """So many lines below; an option has no lines."""
        return self if self.line is None else Place(self.source, self.line + num_lines)


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, a whole number, true, false or null."""

    value: Plain
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    values: tuple["Value", ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands behind a key; ``place`` is the key's."""

    place: Place
    value: "Value"


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping, in the order of its file."""

    entries: Mapping[str, Entry]
    place: Place


Value = Scalar | Items | Section


def load_yaml_with_lines(path: Path, what: str = "a machine file") -> Section:
    """The tree of a file. What cannot be read, or reads in two ways, is a SpecError."""
    source = str(path)
    content = read_file(path, what, SpecError, most_bytes=MAX_FILE_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = Place(source, content.count(b"\n", 0, error.start) + 1)
        found = f"the byte 0x{content[error.start]:02x}, which is no UTF-8"
        raise spec_error_at(place, "", found, "text in UTF-8", "save the file as UTF-8") from error
    return parse_yaml(text, source)


def parse_yaml(text: str, source: str) -> Section:
    """The tree of a text; ``source`` is what errors call it."""
    if len(text.encode(errors="replace")) > MAX_FILE_BYTES:
        expected, fix = f"at most {MAX_FILE_BYTES} bytes", "remove what is no machine"
        raise SpecError(source, "a larger file", expected, fix)
    root = parse_yaml_value(text, Place(source, 1))
    if not isinstance(root, Section):
        found, fix = "a list or a single value", "begin with a key and a colon"
        raise spec_error_at(root.place, "", found, "a mapping of keys to values", fix)
    return root


def parse_yaml_value(text: str, start: Place) -> Value:
    """As `parse_yaml`, but the root may be any value; ``start`` is where the text begins."""
    forbidden = FORBIDDEN.search(text)
    if forbidden is not None:
        place = start.further(text.count("\n", 0, forbidden.start()))
        found = f"the character U+{ord(forbidden[0]):04X}"
        raise spec_error_at(place, "", found, "printable text", "remove the character")
    reader = _Reader(start)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            reader.take(event)
    except yaml.YAMLError as error:
        raise _syntax_error(error, start) from error
    except (ValueError, OverflowError) as error:  # an escape or a version beyond any range
        found, fix = f"a number that YAML cannot have ({error})", "correct the escape"
        raise SpecError(start.source, found, "valid YAML", fix) from error
    if reader.root is None:
        fix = "write at least one key and its value"
        raise SpecError(start.source, "nothing but space and comments", "a value", fix)
    return reader.root


def spec_error_at(place: Place, path: str, found: str, expected: str, fix: str) -> SpecError:
    """An error at a place; ``path`` are the keys that lead there, joined by dots."""
    where = f"{place}: {path}" if path else str(place)
    return SpecError(where, found, expected, fix)


def _syntax_error(error: yaml.YAMLError, start: Place) -> SpecError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = Place(start.source) if mark is None else start.further(mark.line)
    words = [getattr(error, "context", None), getattr(error, "problem", None)]
    found = ", ".join(word for word in words if word) or str(error).splitlines()[0]
    fix = "look for a missing colon, quote or bracket, or a wrong indentation, there or above"
    return spec_error_at(place, "", f"broken YAML ({found})", "valid YAML", fix)


@dataclass(slots=True)
class _Open:
    """A collection that has begun and not yet ended."""

    place: Place
    is_mapping: bool
    key: tuple[str, Place] | None = None  # read, its value is still to come
    entries: dict[str, Entry] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)


class _Reader:
    """Builds the tree from the parser's events, with a stack of its own instead of recursion."""

    def __init__(self, start: Place) -> None:
        self.root: Value | None = None
        self._start = start
        self._open: list[_Open] = []

    def take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        place = Place(self._start.source) if mark is None else self._start.further(mark.line)
        match event:
            case yaml.DocumentStartEvent() if self.root is not None:
                fix = "remove what follows ---"
                raise self._error(place, "a second document", "one document", fix)
            case yaml.DocumentStartEvent() if event.tags:
                raise self._error(place, "%TAG", "no tags", "remove the directive")
            case yaml.AliasEvent():
                fix = "write the value out, or move it to a file that others extend"
                raise self._error(place, f"the alias *{event.anchor}", "a value", fix)
            case yaml.ScalarEvent():
                self._check_plain_node(event, place)
                self._take_scalar(event, place)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._check_plain_node(event, place)
                self._begin(place, is_mapping=isinstance(event, yaml.MappingStartEvent))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._open.pop()
                if ended.is_mapping:
                    self._add(Section(ended.entries, ended.place))
                else:
                    self._add(Items(tuple(ended.values), ended.place))

    def _check_plain_node(self, event: yaml.NodeEvent, place: Place) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            fix = "remove the tag; quotes make text, digits make a number"
            found = f"the tag {tag.replace('tag:yaml.org,2002:', '!!')}"
            raise self._error(place, found, "no tags", fix)
        if event.anchor is not None:
            found = f"the anchor &{event.anchor}"
            raise self._error(place, found, "no anchors", "remove the anchor")

    def _take_scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        match = FORBIDDEN.search(event.value)
        if match is not None:
            found = f"an escape for U+{ord(match[0]):04X}"
            raise self._error(place, found, "printable text", "remove the escape")
        value = event.value if event.style is not None else resolve_plain(event.value)
        if isinstance(value, Refusal):
            raise self._error(place, *value)
        if self._expects_key():
            self._take_key(value, place, is_merge=event.style is None and value == "<<")
        else:
            self._add(Scalar(value, place))

    def _take_key(self, key: Plain, place: Place, *, is_merge: bool) -> None:
        collection = self._open[-1]
        if not isinstance(key, str):
            word = "null" if key is None else str(key).lower()
            found = f"the key {word}, which is no text"
            raise self._error(place, found, "a name", "keys are names of fields")
        if is_merge:
            fix = "name a file or preset at the top: `extends: base.yaml`"
            raise self._error(place, "the merge key <<", "a name", fix)
        collection.key = key, place
        if key in collection.entries:
            first = collection.entries[key].place.line
            found = f"the key a second time (first in line {first})"
            raise self._error(place, found, "each key once", "remove one of the two")

    def _begin(self, place: Place, *, is_mapping: bool) -> None:
        if self._expects_key():
            fix = "keys are names of fields"
            raise self._error(place, "a collection as a key", "a name", fix)
        if len(self._open) == MAX_DEPTH:
            expected = f"at most {MAX_DEPTH} levels"
            raise self._error(place, "a deeper tree", expected, "flatten it")
        self._open.append(_Open(place, is_mapping))

    def _expects_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _add(self, value: Value) -> None:
        if not self._open:
            self.root = value
            return
        collection = self._open[-1]
        if collection.key is None:
            collection.values.append(value)
        else:
            key, place = collection.key
            collection.entries[key] = Entry(place, value)
            collection.key = None

    def _error(self, place: Place, found: str, expected: str, fix: str) -> SpecError:
        return spec_error_at(place, ".".join(self._path()), found, expected, fix)

    def _path(self) -> Iterator[str]:
        for collection in self._open:
            if collection.key is not None:
                yield collection.key[0]
            elif not collection.is_mapping:
                yield str(len(collection.values))
