"""``--set cube.hbm.pseudo_channels=16``: one value of a machine, said on the command line."""

import re
from collections.abc import Sequence

from tilewright.errors import SpecError
from tilewright.machine.document import MachineDocument, merge_sections
from tilewright.machine.yaml_scalar import FORBIDDEN, Refusal, resolve_plain
from tilewright.machine.yaml_text import (
    Entry,
    Place,
    Scalar,
    Section,
    Value,
    parse_yaml_value,
)

OPTION = "--set"

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+){0,30})=(.*)")
_CONTROL = re.compile(r"[\t\n\r]")  # which a file may have, between its values
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
