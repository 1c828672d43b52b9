"""``--set cube.hbm.pseudo_channels=16``: one value of a machine, said on the command line."""

import re
from collections.abc import Sequence

from tilewright.errors import SpecError
from tilewright.machine.document import MachineDocument, merge_sections
from tilewright.machine.yaml_scalar import Refusal, resolve_plain
from tilewright.machine.yaml_text import (
    Entry,
    Items,
    Place,
    Scalar,
    Section,
    Value,
    parse_yaml_value,
)

__all__ = ("OPTION", "override_document")

OPTION = "--set"

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+){0,30})=(.*)", re.DOTALL)
_YAML_STARTS = ("[", "{", '"', "'")  # all else is one unquoted word, whatever stands in it


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
        return _moved(parse_yaml_value(word, place.source), place)
    value = resolve_plain(word)
    if isinstance(value, Refusal):
        raise SpecError(str(place), *value)
    return Scalar(value, place)


def _moved(value: Value, place: Place) -> Value:
    """The same value, said by the option: a line of an option would mean nothing."""
    match value:
        case Scalar():
            return Scalar(value.value, place)
        case Items():
            return Items(tuple(_moved(item, place) for item in value.values), place)
        case Section():
            entries = value.entries.items()
            return Section(
                {key: Entry(place, _moved(entry.value, place)) for key, entry in entries}, place
            )
