"""All that files, presets and ``--set`` say about one machine: the merged tree."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import SpecError, meant
from tilewright.machine.file.schema import KIND, SpecTypes, child_types, kind_of_type
from tilewright.machine.file.yaml_scalar import FORBIDDEN, Refusal, resolve_plain
from tilewright.machine.file.yaml_text import (
    Entry,
    Items,
    Place,
    Scalar,
    Section,
    Value,
    load_yaml_with_lines,
    parse_yaml,
    parse_yaml_value,
    spec_error_at,
)
from tilewright.machine.presets import list_presets, preset_text
from tilewright.machine.spec import MachineSpec

EXTENDS = "extends"
MAX_CHAIN = 16
FILE_ENDINGS = (".yaml", ".yml", ".json")

OPTION = "--set"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+){0,30})=(.*)")
_CONTROL = re.compile(r"[\t\n\r]")  # which a file may have, between its values
_YAML_STARTS = ("[", "{", '"', "'")  # all else is one unquoted word, whatever stands in it


@dataclass(frozen=True, slots=True)
class MachineDocument:
    """The merged tree; every key and value in it knows where it was written."""

    source: str  # what errors call the outermost file
    root: Section

    def place_of(self, path: Sequence[str]) -> Place | None:
        """Where a key is written; None if nobody wrote it, so that its default holds."""
        entry = self.entry_of(path)
        return None if entry is None else entry.place

    def entry_of(self, path: Sequence[str]) -> Entry | None:
        value: Value = self.root
        entry: Entry | None = None
        for part in path:
            match value:
                case Section(entries=entries):
                    entry = entries.get(part)
                case Items(values=values) if part.isdecimal() and int(part) < len(values):
                    found = values[int(part)]
                    entry = Entry(found.place, found)
                case _:
                    entry = None
            if entry is None:
                return None
            value = entry.value
        return entry

    def nearest_place(self, path: Sequence[str]) -> Place:
        """Where a key, or else the innermost written section around it, is written."""
        for length in range(len(path), 0, -1):
            place = self.place_of(path[:length])
            if place is not None:
                return place
        return Place(self.source)


def load_document(source: str | Path) -> MachineDocument:
    """A preset by its name, or a file by its path, with all that it extends."""
    origin = _path_origin(source) if isinstance(source, Path) else _origin(source, None, None)
    return MachineDocument(origin.shown, _Loader().merged(origin, ()))


def document_of_text(text: str, name: str) -> MachineDocument:
    """As if ``text`` stood in a file; paths in it are relative to the working directory."""
    origin = _Origin(identity=name, shown=name, directory=Path(), text=text)
    return MachineDocument(name, _Loader().merged(origin, ()))


def merge_sections(base: Section, over: Section, types: SpecTypes = (MachineSpec,)) -> Section:
    """``over`` wins, key by key; of a base of another kind, what the new kind has too stays."""
    kept = base.entries
    if len(types) > 1:
        kind = _kind(over if KIND in over.entries else base, types)
        if kind != _kind(base, types):
            known = {key for t in types if kind_of_type(t) == kind for key in t.model_fields}
            kept = {key: entry for key, entry in kept.items() if key in known}
        types = tuple(t for t in types if kind_of_type(t) == kind)
    entries = dict(kept)
    for key, entry in over.entries.items():
        entries[key] = entry
        before = kept.get(key)
        if before and isinstance(before.value, Section) and isinstance(entry.value, Section):
            children = child_types(types[0], key) if types else ()
            section = merge_sections(before.value, entry.value, children)
            entries[key] = Entry(entry.place, section)
    return Section(entries, over.place)


def _kind(section: Section, types: SpecTypes) -> object:
    entry = section.entries.get(KIND)
    if entry is None:
        return kind_of_type(types[0]) if types else None  # the first is the schema's default
    return entry.value.value if isinstance(entry.value, Scalar) else None


@dataclass(frozen=True, slots=True)
class _Origin:
    """A text that can be loaded: a file, a preset or a text in memory."""

    identity: str
    shown: str
    directory: Path | None = None  # that paths in it are relative to; None: it has no paths
    path: Path | None = None
    text: str | None = None


class _Loader:
    """Loads each file once, however often it is extended."""

    def __init__(self) -> None:
        self._merged: dict[str, Section] = {}

    def merged(self, origin: _Origin, chain: tuple[_Origin, ...]) -> Section:
        if origin.identity in self._merged:
            return self._merged[origin.identity]
        if origin.path is not None:
            tree = load_yaml_with_lines(origin.path)
        else:
            tree = parse_yaml(origin.text or "", origin.shown)
        entry = tree.entries.get(EXTENDS)
        own = {key: value for key, value in tree.entries.items() if key != EXTENDS}
        bases = (
            [] if entry is None else [self._base(name, (*chain, origin)) for name in _names(entry)]
        )
        result = Section({}, tree.place)
        for section in (*bases, Section(own, tree.place)):
            result = merge_sections(result, section)
        self._merged[origin.identity] = result
        return result

    def _base(self, name: Scalar, chain: tuple[_Origin, ...]) -> Section:
        base = _origin(str(name.value), chain[-1].directory, name.place)
        identities = [origin.identity for origin in chain]
        if base.identity in identities:
            circle = [*chain[identities.index(base.identity) :], base]
            found = "a circle: " + " extends ".join(origin.shown for origin in circle)
            fix = "remove one of them"
            raise spec_error_at(name.place, EXTENDS, found, "files that end somewhere", fix)
        if len(chain) == MAX_CHAIN:
            found, expected = "a longer chain of files", f"at most {MAX_CHAIN}"
            raise spec_error_at(name.place, EXTENDS, found, expected, "join some of them")
        return self.merged(base, chain)


def _names(entry: Entry) -> list[Scalar]:
    values = entry.value.values if isinstance(entry.value, Items) else (entry.value,)
    names = [value for value in values if isinstance(value, Scalar)]
    if len(names) < len(values) or not all(isinstance(name.value, str) for name in names):
        expected = "a name of a preset, a path, or a list of those"
        fix = "write it like `extends: [ahbm, ./mine.yaml]`"
        raise spec_error_at(entry.place, EXTENDS, "something else", expected, fix)
    return names


def _origin(name: str, directory: Path | None, place: Place | None) -> _Origin:
    """What a name means; ``place`` is where it is written, None for a command line."""
    if name in list_presets():
        return _Origin(f"preset {name}", f"preset {name}", None, None, preset_text(name))
    if name.endswith(FILE_ENDINGS) or "/" in name or "\\" in name:
        path = Path(name) if directory is None else directory / name
        if place is None or os.path.isfile(path):  # pathlib's raises for a long name
            return _path_origin(path)
        fix = f"paths are relative to {directory}" if directory else "presets extend presets"
        raise spec_error_at(place, EXTENDS, f"no file {str(path)!r}", "a file", fix)
    known = list_presets()
    fix = meant(name[:80], known, "a path has a / in it or ends with .yaml")
    found, expected = f"no preset {name[:80]!r}", f"one of {', '.join(known)}, or a path"
    if place is None:
        raise SpecError("machine", found, expected, fix)
    raise spec_error_at(place, EXTENDS, found, expected, fix)


def _path_origin(path: Path) -> _Origin:
    try:
        identity = os.path.realpath(path)
    except ValueError:  # a path that no file can have; reading it will say so
        identity = str(path)
    return _Origin(identity, str(path), path.parent, path)


def override_document(document: MachineDocument, overrides: Sequence[str]) -> MachineDocument:
    """The document with the values of ``PATH=VALUE`` texts in it; of two for one path, the last.

    The overrides come together before they meet the document, so their order does not decide
    what a changed ``kind`` throws away.
    """
    together = Section({}, Place(OPTION))
    for text in overrides:
        together = merge_sections(together, _tree_of(text), types=())
    return MachineDocument(document.source, merge_sections(document.root, together))


def _tree_of(text: str) -> Section:
    control = _CONTROL.search(text) or FORBIDDEN.search(text)
    if control is not None:
        found = f"the character U+{ord(control[0]):04X} in {text[:80]!r}"
        raise SpecError(OPTION, found, "printable text of one line", "remove the character")
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        fix = "write it like --set cube.hbm.pseudo_channels=16"
        raise SpecError(OPTION, repr(text[:80]), "PATH=VALUE", fix)
    path, word = match.groups()
    place = Place(f"{OPTION} {path}")
    value = _value_of(word.strip(), place)
    for key in reversed(path.split(".")):
        value = Section({key: Entry(place, value)}, place)
    return value if isinstance(value, Section) else Section({}, place)


def _value_of(word: str, place: Place) -> Value:
    if word.startswith(_YAML_STARTS):
        return parse_yaml_value(word, place)
    value = resolve_plain(word)
    if isinstance(value, Refusal):
        raise SpecError(str(place), *value)
    return Scalar(value, place)
