"""What is wrong with a machine file, told with file, line and path; and keys without effect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pydantic import ValidationError

from tilewright.errors import SpecError, TilewrightError, meant
from tilewright.machine.file.document import MachineDocument
from tilewright.machine.file.schema import (
    KIND,
    SpecTypes,
    child_types,
    kind_of_type,
    paths_of_key,
)
from tilewright.machine.file.yaml_text import Items, Place, Scalar, Section, Value
from tilewright.machine.spec import CrossbarSpec, MachineSpec
from tilewright.machine.spec.field import QUANTITY, RULE

Path = tuple[str, ...]
Fact = tuple[str, str, str]
"""Found, expected and fix."""

_SECTION = ("a section", "indent its keys below it, or --set one of them")
_LIST = ("a list", "write it in brackets: [1, 2]")
_EXPECTED: Mapping[str, tuple[str, str]] = {
    "int_type": ("a whole number", "write it in digits, without quotes"),
    "string_type": ("text", "put it in quotes"),
    "string_too_short": ("text that is not empty", "write a word"),
    "string_too_long": ("a shorter text", "leave the rest to comments"),
    "string_pattern_mismatch": ("text of one line", "remove tabs and ends of lines"),
    "parameter": ("a number, text, true or false", "a parameter is a single value"),
    "model_type": _SECTION,
    "model_attributes_type": _SECTION,
    "dict_type": _SECTION,
    "union_tag_not_found": _SECTION,
    "tuple_type": _LIST,
    "missing": ("one value more", "complete the list"),
    "too_long": ("a shorter list", "remove what is too much"),
}

_SWITCHES = {  # by the key that decides, if it is this or is not: paths without effect below
    ("fabric.kind", False, "switch"): "fabric.switch_ps",
    ("cube.hbm.model", False, "simple"): """
        cube.hbm.simple_latency_ps cube.hbm.simple_efficiency_percent
    """,
    ("cube.hbm.model", True, "simple"): """
        cube.hbm.refresh cube.hbm.read_queue_bursts cube.hbm.write_queue_bursts
        cube.hbm.drain_high_bursts cube.hbm.drain_low_bursts
    """,
    ("cube.hbm.refresh.kind", False, "all_bank"): "cube.hbm.refresh.all_bank_ps",
    ("cube.hbm.refresh.kind", False, "per_bank"): "cube.hbm.refresh.per_bank_ps",
    ("cube.hbm.refresh.kind", True, "none"): """
        cube.hbm.refresh.interval_ps cube.hbm.refresh.phase_ps
    """,
}


@dataclass(eq=False, repr=False)
class MachineFileError(SpecError):
    """The first mistake of a machine file; ``problems`` has all of them, in the file's order."""

    several: tuple[TilewrightError, ...] = ()

    @property
    def problems(self) -> tuple[TilewrightError, ...]:
        return self.several or (self,)


def spec_error(document: MachineDocument, error: ValidationError) -> MachineFileError:
    """One error for all that pydantic found wrong."""
    # the input stays out: the tree has the same values, with their places
    found = error.errors(include_url=False, include_input=False)
    return joined(located_problem for one in found for located_problem in _problems(document, one))


def joined(problems: Iterable[tuple[Place, SpecError]]) -> MachineFileError:
    """The first in the order of lines, with all others in its ``problems``."""
    by_place = sorted(problems, key=lambda problem: _order(problem[0]))
    unique = tuple({error.where: error for _, error in reversed(by_place)}.values())[::-1]
    first = unique[0]
    fix = first.fix if len(unique) == 1 else f"{first.fix}; and {len(unique) - 1} more"
    return MachineFileError(first.where, first.found, first.expected, fix, unique)


def located(
    document: MachineDocument, path: Sequence[str], fact: Fact, related: Sequence[Path] = ()
) -> tuple[Place, SpecError]:
    """Return an error about a path, at the place of it or of a related path that is nearest.

    Nearest to the user is an option, then a file, then a preset; a default has no place.
    """
    places = [document.place_of(one) for one in (path, *related)]
    written = [one for one in places if one is not None]
    place = min(written, key=_distance, default=document.nearest_place(path))
    return place, SpecError(where_text(place, ".".join(path)), *fact)


def where_text(place: Place, path: str) -> str:
    """A place and the path that stands there; an option says its path itself."""
    is_said = not path or place.source.endswith(f" {path}")
    return str(place) if is_said else f"{place}: {path}"


def _distance(place: Place) -> int:
    if place.line is None:
        return 0
    return 2 if place.source.startswith("preset ") else 1


def _order(place: Place) -> tuple[bool, str, int]:
    is_option = place.line is None
    return is_option, place.source, place.line or 0


def _problems(
    document: MachineDocument, error: Mapping[str, Any]
) -> Iterator[tuple[Place, SpecError]]:
    path, owners = _path_of(error["loc"])
    if error["type"] == RULE:
        for rule in error["ctx"]["broken"]:
            related = [(*path, *other.split(".")) for other in rule.related]
            fact = rule.found, rule.expected, rule.fix
            yield located(document, (*path, *rule.path.split(".")), fact, related)
        return
    if error["type"] == "union_tag_invalid":
        path = (*path, KIND)
    entry = document.entry_of(path)
    yield located(document, path, _fact(error, path, owners, entry.value if entry else None))


def _path_of(loc: Sequence[str | int]) -> tuple[Path, SpecTypes]:
    """The keys of a location, without pydantic's names of union members; and who has the last."""
    path: Path = ()
    types: SpecTypes = (MachineSpec,)
    owners: SpecTypes = ()
    for part in loc:
        if len(types) > 1:  # this part is the name of a member
            types = tuple(one for one in types if kind_of_type(one) == part)
            continue
        path, owners = (*path, str(part)), types
        types = child_types(types[0], str(part)) if types else ()
    return path, owners


def _fact(error: Mapping[str, Any], path: Path, owners: SpecTypes, value: Value | None) -> Fact:
    context = error.get("ctx", {})
    found = _found(value)
    match error["type"]:
        case "extra_forbidden":
            names = list(owners[0].model_fields) if owners else []
            return "an unknown key", f"one of {', '.join(names)}", _meant(path, names)
        case "greater_than_equal":
            return found, f"at least {context['ge']}", "raise it"
        case "less_than_equal":
            return found, f"at most {context['le']}", "lower it"
        case "literal_error" | "union_tag_invalid":
            expected = context.get("expected") or context["expected_tags"]
            return found, f"one of {expected}", _near_choice(value, expected)
        case kind if kind == QUANTITY:
            return found, context["expected"], context["fix"]
        case kind if kind in _EXPECTED:
            return found, *_EXPECTED[kind]
        case _:
            return found, error["msg"], "correct the value"


def _meant(path: Path, names: Sequence[str]) -> str:
    fix = "remove the key"
    elsewhere = paths_of_key(path[-1])
    inside = [one for one in elsewhere if one.startswith(".".join((*path[:-1], "")))]
    if ".".join(path) in elsewhere:
        fix = f"another kind of {'.'.join(path[:-1])} has it: change its kind or remove the key"
    elif inside or len(elsewhere) == 1:
        fix = f"did you mean {(inside or elsewhere)[0]!r}?"
    return meant(path[-1][:80], names, fix)


def _near_choice(value: Value | None, choices: str) -> str:
    names = [word for word in choices.split("'") if word.isidentifier() and word != "or"]
    word = value.value if isinstance(value, Scalar) else None
    return meant(word[:80] if isinstance(word, str) else "", names, "choose one of them")


def _found(value: Value | None) -> str:
    match value:
        case None:
            return "nothing"
        case Scalar(value=None | bool() as word):
            return "null" if word is None else str(word).lower()
        case Scalar(value=word):
            text = repr(word)
            return text if len(text) <= 60 else text[:57] + "..."
        case Section():
            return "a section"
        case Items(values=values):
            return f"a list of {len(values)}"


def unused_keys(document: MachineDocument, spec: MachineSpec) -> tuple[str, ...]:
    """Return a warning for each key that somebody wrote and that changes nothing."""
    warnings: dict[str, str] = {}
    for paths, reason in _switched_off(spec):
        for path in paths:
            for key in _written_below(document, path):
                place = document.nearest_place(key.split("."))
                text = f"{where_text(place, key)}: has no effect, since {reason}"
                warnings.setdefault(key, text)
    return tuple(warnings.values())


def _switched_off(spec: MachineSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield paths below which nothing has an effect on this machine, and why."""
    if isinstance(spec.cube.noc, CrossbarSpec) and spec.cube.ucie is None:
        yield ("cube.noc.bytes_per_us",), "cube.noc is a crossbar and cube.ucie is null"
    if spec.sip.count == 1:
        yield ("fabric",), "there is one SIP"
    for (key, is_off_if_equal, value), paths in _SWITCHES.items():
        if (attrgetter(key)(spec) == value) == is_off_if_equal:
            yield tuple(paths.split()), f"{key} is {'' if is_off_if_equal else 'not '}{value}"


def _written_below(document: MachineDocument, path: str) -> Iterator[str]:
    entry = document.entry_of(path.split("."))
    if entry is None:
        return
    if isinstance(entry.value, Section):
        for key in entry.value.entries:
            yield from _written_below(document, f"{path}.{key}")
    else:
        yield path
