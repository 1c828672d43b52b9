"""The values of a topology, read by the table of keys: settings of a machine, or refusals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, assert_never

from tilewright.errors import SpecError, meant
from tilewright.interop.kernbench.topology.document import KeyPath, TopologyDocument
from tilewright.interop.kernbench.topology.keys import (
    KEYS,
    SECTIONS,
    Builtin,
    Count,
    Fate,
    Must,
    Names,
    Number,
    Refused,
    Sets,
    Unit,
    WithoutEffect,
    key_text,
)
from tilewright.machine.file.schema import near_names
from tilewright.machine.file.write import quantity_text
from tilewright.machine.file.yaml_text import Place, spec_error_at

MAX_NAMES = 12  # of known keys that an error lists
MAX_NUMBER = 10**18  # no field of a machine takes as much

_NUMBER_FIX = "write it in digits; no value is above 10^18"
_SECTION_FIX = "indent its keys below it, or remove it"
_OTHER_BLOCK = "write it as a block of ours and name its class with impl in the machine file"


FieldValue = int | str | tuple[int, ...]


class Problem(NamedTuple):
    """Three of the four parts of an error; the key is the fourth."""

    found: str
    expected: str
    fix: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of the machine and where its value comes from."""

    field: str  # path in a machine file
    value: FieldValue  # in the field's unit
    key: KeyPath  # path in the topology
    is_default: bool = False  # whether the key is absent and KernBench's default holds


@dataclass(slots=True)
class Reading:
    """All that a topology says, while it is read; ``problems`` has every refusal."""

    document: TopologyDocument
    numbers: dict[KeyPath, Fraction] = field(default_factory=dict)  # for rules
    words: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)  # for rules
    settings: dict[str, Setting] = field(default_factory=dict)  # by field
    without_effect: dict[KeyPath, str] = field(default_factory=dict)  # with the reason
    problems: list[tuple[Place, SpecError]] = field(default_factory=list)
    refused: set[KeyPath] = field(default_factory=set)

    def refuse(self, path: KeyPath, problem: Problem) -> None:
        """Record that a key is wrong."""
        place = self.document.place_of(path)
        self.refused.add(path)
        self.problems.append((place, spec_error_at(place, key_text(path), *problem)))

    def set(self, setting: Setting) -> None:
        """Record a field's value; refuse a second key that gives the field another value."""
        first = self.settings.setdefault(setting.field, setting)
        if first.value == setting.value:
            return
        line = self.document.place_of(first.key).line
        there = key_text(first.key) + f" (line {line})" * (line is not None)
        found = f"{_with_unit(setting)}, while {there} gives {_with_unit(first)}"
        expected = f"one value: both are {setting.field} of the machine"
        fix = "write the same in both, or remove one"
        self.refuse(setting.key, Problem(found, expected, fix))


def read_keys(document: TopologyDocument) -> Reading:
    """Read every key of a topology on its own; ``rules`` has what several keys decide together."""
    reading = Reading(document)
    for path, value in _known_keys(reading, (), document.spec):
        problem = _read(reading, path, KEYS[path], value)
        if problem is not None:
            reading.refuse(path, problem)
    return reading


def _known_keys(
    reading: Reading, section: KeyPath, entries: Mapping[Any, Any]
) -> Iterator[tuple[KeyPath, object]]:
    """Yield what stands behind known keys; refuse all others, a section of them as one."""
    for key, value in entries.items():
        path = (*section, key if isinstance(key, str) else _shown(key))
        if not isinstance(key, str):
            found = f"the key {_shown(key)}, which is no text"
            problem = Problem(found, "a name", "put it in quotes")
            reading.refuse(path, problem)
        elif path in KEYS:
            yield path, value
        elif path not in SECTIONS:
            reading.refuse(path, _unknown_key(path))
        elif isinstance(value, Mapping):
            yield from _known_keys(reading, path, value)
        else:
            names = ", ".join(SECTIONS[path])
            problem = Problem(_shown(value), f"a section with keys such as {names}", _SECTION_FIX)
            reading.refuse(path, problem)


def _unknown_key(path: KeyPath) -> Problem:
    names = SECTIONS[path[:-1]]
    more = ", ..." * (len(names) > MAX_NAMES)
    expected = f"a key that is known here: {', '.join(names[:MAX_NAMES])}{more}"
    elsewhere = [key_text(known) for known in (*KEYS, *SECTIONS) if known[-1:] == path[-1:]]
    near = elsewhere or near_names(path[-1], names)
    fix = "remove it, and set what it means in the machine file"
    return Problem("an unknown key", expected, f"did you mean {near[0]!r}?" if near else fix)


def _read(reading: Reading, path: KeyPath, fate: Fate, value: object) -> Problem | None:
    """Record what a key means; return what is wrong with it, or None."""
    match fate:
        case Sets(is_pair=True):
            return _read_pair(reading, path, fate, value)
        case Sets():
            return _read_field(reading, path, fate, value)
        case Count() | Number():
            return _read_number(reading, path, fate, value)
        case Names():
            return _read_words(reading, path, fate, value)
        case Must(value=wanted, fix=fix):
            if _number(value) != wanted:
                return Problem(_shown(value), f"{wanted}, which no key can change here", fix)
            reading.without_effect[path] = f"it is {wanted} here too"
        case Builtin():
            if not isinstance(value, str) or not value.startswith("builtin."):
                expected = "builtin.<name>, an implementation of KernBench's own"
                return Problem(_shown(value), expected, _OTHER_BLOCK)
            reading.without_effect[path] = "the blocks here are ours"
        case WithoutEffect(reason=reason):
            reading.without_effect[path] = reason
        case Refused(fix=fix):
            return Problem("a key without a counterpart", "no such key", fix)
        case _:
            assert_never(fate)
    return None


def _read_field(reading: Reading, path: KeyPath, fate: Sets, value: object) -> Problem | None:
    whole = _whole(value, fate.unit)
    if whole is None:
        fix = _NUMBER_FIX if _number(value) is None else "round it, or write no negative number"
        return Problem(_shown(value), fate.unit.expected, fix)
    reading.set(Setting(fate.field, whole, path))
    return None


def _read_pair(reading: Reading, path: KeyPath, fate: Sets, value: object) -> Problem | None:
    values = value if isinstance(value, list | tuple) else ()
    pair = [whole for whole in (_whole(one, fate.unit) for one in values) if whole is not None]
    if len(values) != 2 or len(pair) != 2:
        expected = f"x and y in {fate.unit.expected}"
        return Problem(_shown(value), expected, "write them like [7.5, 2.0]")
    reading.set(Setting(fate.field, tuple(pair), path))
    return None


def _read_number(
    reading: Reading, path: KeyPath, fate: Count | Number, value: object
) -> Problem | None:
    number = _number(value)
    if isinstance(fate, Count):
        is_right = number is not None and isinstance(value, int) and value >= 1
        expected = "a whole number of at least 1"
    else:
        is_right, expected = number is not None and number >= 0, "a number of at least 0"
    if number is None or not is_right:
        return Problem(_shown(value), expected, _NUMBER_FIX)
    reading.numbers[path] = number
    return None


def _read_words(reading: Reading, path: KeyPath, fate: Names, value: object) -> Problem | None:
    words = value if fate.is_list and isinstance(value, list | tuple) else (value,)
    if fate.is_list:
        if list(words) != list(fate.choices):
            expected = f"[{', '.join(fate.choices)}], in this order: the layout here has no other"
            return Problem(_shown(value), expected, "write all four, and change pe_per_corner")
    elif value not in fate.choices:
        word = value[:80] if isinstance(value, str) else ""
        fix = meant(word, fate.choices, "choose one of them")
        return Problem(_shown(value), f"one of {', '.join(fate.choices)}", fix)
    reading.words[path] = tuple(str(word) for word in words)
    return None


def _whole(value: object, unit: Unit) -> int | None:
    """Convert a number exactly; None for what is no number, below 0, or not whole in the unit."""
    number = _number(value)
    if number is None or number < 0 or (number * unit.factor).denominator != 1:
        return None
    return (number * unit.factor).numerator


def _number(value: object) -> Fraction | None:
    """Return a number as it is written: 0.01 is one hundredth, not the nearest binary fraction.

    None for what is no finite number of at most MAX_NUMBER.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= MAX_NUMBER:  # also what is no number at all, which compares with nothing
        return None
    return Fraction(float.__repr__(value)) if isinstance(value, float) else Fraction(value)


def _with_unit(setting: Setting) -> str:
    if isinstance(setting.value, int):
        return quantity_text(setting.value, setting.field)
    return str(setting.value)


def _shown(value: object) -> str:
    match value:
        case None:
            return "no value"
        case Mapping():
            return "a section"
        case bool():
            return str(value).lower()
        case int() if abs(value) > MAX_NUMBER:  # Python writes no number of thousands of digits
            return "a number beyond 10^18"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else text[:57] + "..."
