"""A topology as a machine: read, converted, checked, built, and written as a machine file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

from tilewright.errors import SpecError, TilewrightError
from tilewright.interop.kernbench.topology.document import (
    MAPPING,
    TopologyDocument,
    load_topology_document,
    topology_of_mapping,
)
from tilewright.interop.kernbench.topology.keys import key_text
from tilewright.interop.kernbench.topology.reading import Reading, Setting, read_keys
from tilewright.interop.kernbench.topology.rules import apply_rules
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.file.document import MachineDocument, load_document, merge_sections
from tilewright.machine.file.explain import MachineFileError, joined, located
from tilewright.machine.file.schema import is_path
from tilewright.machine.file.write import value_text, word_text
from tilewright.machine.file.yaml_text import (
    Entry,
    Items,
    Place,
    Scalar,
    Section,
    Value,
    spec_error_at,
)
from tilewright.machine.parse import DEFAULT_PRESET, spec_of
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.field import Spec

MAX_NAME_LETTERS = 80  # of a machine


@dataclass(frozen=True, slots=True)
class Topology:
    """A KernBench topology and the machine that it describes here."""

    source: str  # the file as it was named; "topology" for a mapping
    spec: dict[str, Any]  # the mapping as it was given
    machine: Machine
    text: str  # the machine file
    settings: tuple[Setting, ...]  # fields of the machine that differ from the base
    without_effect: Mapping[str, str]  # reason by key of the topology

    @property
    def topology_obj(self) -> "Topology":
        """The topology itself; KernBench's first release returned a handle around it."""
        return self


def resolve_topology(path: str | Path | Mapping[str, Any]) -> Topology:
    """Read a topology from a YAML or JSON file or a mapping, and build its machine.

    Anything wrong is a SpecError; its ``problems`` are all mistakes, with line and path.

    >>> topology = resolve_topology({"system": {"sips": {"count": 2}}})
    >>> topology.spec["system"]["sips"], topology.machine.grid.num_pes
    ({'count': 2}, 256)
    """
    if isinstance(path, Mapping):
        document = topology_of_mapping(path)
    else:
        document = load_topology_document(Path(path).expanduser())
    return _import(document)


load_topology = resolve_topology
"""The name of `resolve_topology` in KernBench's first release."""


def _import(document: TopologyDocument) -> Topology:
    base_document = load_document(DEFAULT_PRESET)
    base = spec_of(base_document)
    reading = read_keys(document)
    apply_rules(reading, base)
    machine = _build(_machine_document(reading, base_document), reading)
    changes = {
        name: one for name, one in reading.settings.items() if attrgetter(name)(base) != one.value
    }
    without_effect = {key_text(path): why for path, why in sorted(reading.without_effect.items())}
    text = imported_text(document.name, machine.spec, changes, without_effect)
    settings = tuple(changes.values())
    return Topology(document.source, document.spec, machine, text, settings, without_effect)


def _machine_document(reading: Reading, base: MachineDocument) -> MachineDocument:
    """Put the settings into the tree of a machine file whose lines are those of the topology."""
    document = reading.document
    place = Place(document.source)
    name = _printable(document.name) or MAPPING
    stem = _printable(Path(document.name).stem) or MAPPING
    title = {"name": stem, "description": f"imported from the KernBench topology {name}"}
    root = Section({key: Entry(place, Scalar(word, place)) for key, word in title.items()}, place)
    for setting in reading.settings.values():
        at = document.place_of(setting.key)
        value: Value = _tree_value(setting, at)
        for name in reversed(setting.field.split(".")):
            value = Section({name: Entry(at, value)}, at)
        if isinstance(value, Section):
            root = merge_sections(root, value)
    return MachineDocument(document.source, merge_sections(base.root, root))


def _tree_value(setting: Setting, place: Place) -> Value:
    if isinstance(setting.value, tuple):
        return Items(tuple(Scalar(one, place) for one in setting.value), place)
    return Scalar(setting.value, place)


def _printable(text: str) -> str:
    return "".join(one for one in text if one.isprintable())[:MAX_NAME_LETTERS]


def _build(document: MachineDocument, reading: Reading) -> Machine:
    """Check and build the machine; an error names the topology's key, then the machine's field."""
    problems = list(reading.problems)
    try:
        spec = spec_of(document)
    except MachineFileError as error:
        problems += [_with_key(one, reading) for one in error.problems]
        raise joined(problems) from error
    if problems:
        raise joined(problems)
    try:
        return build_machine(spec)
    except SpecError as error:  # the builder knows fields but no files
        fact = error.found, error.expected, error.fix
        if not is_path(error.where):
            raise SpecError(f"{document.source}: {error.where}", *fact) from error
        _, here = located(document, error.where.split("."), fact)
        raise _with_key(here, reading)[1] from error


def _with_key(error: TilewrightError, reading: Reading) -> tuple[Place, SpecError]:
    """Name the key of the topology in an error about a field that it sets.

    A rule may name a field that has its default; then a field of its section broke the rule.
    """
    field = error.where.rpartition(": ")[2]
    section = field.rpartition(".")[0] + "."
    beside = [one for one in reading.settings.values() if one.field.startswith(section)]
    setting = reading.settings.get(field) or next(iter(beside), None)
    fact = error.found, error.expected, error.fix
    if setting is None:
        return Place(reading.document.source), SpecError(error.where, *fact)
    place = reading.document.place_of(setting.key)
    return place, spec_error_at(place, f"{key_text(setting.key)}, here {field}", *fact)


_WRAPPER = TextWrapper(
    96,
    initial_indent="#   ",
    subsequent_indent="#   ",
    break_long_words=False,
    break_on_hyphens=False,
)


def imported_text(
    file_name: str,
    spec: MachineSpec,
    changes: Mapping[str, Setting],
    without_effect: Mapping[str, str],
) -> str:
    """Write the machine file of a topology file; equal inputs give equal bytes.

    ``changes`` are by field; ``without_effect`` has the reason by key of the topology.
    """
    source = " ".join(file_name.split())
    lines = [
        f"# {spec.name}: imported from the KernBench topology {source}.",
        f"# It says what differs from {DEFAULT_PRESET}; a comment names the key of the topology.",
        f"extends: {DEFAULT_PRESET}",
        f"name: {word_text(spec.name)}",
        f"description: {word_text(spec.description)}",
        *_section_lines(spec, (), changes),
        *_idle_lines(without_effect),
    ]
    return "\n".join(lines) + "\n"


def _idle_lines(without_effect: Mapping[str, str]) -> Iterator[str]:
    """Write the keys without effect as comments, all of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in without_effect.items():
        by_reason.setdefault(reason, []).append(key)
    if by_reason:
        yield from ("", "# Keys of the topology that have no effect here:")
    for reason, keys in by_reason.items():
        yield f"# - {reason}:"
        yield from _WRAPPER.wrap(", ".join(keys))


def _section_lines(
    spec: Spec, path: tuple[str, ...], changes: Mapping[str, Setting]
) -> Iterator[str]:
    indent = "  " * len(path)
    for name, field in type(spec).model_fields.items():
        value, below = getattr(spec, name), (*path, name)
        setting = changes.get(".".join(below))
        if isinstance(value, Spec):
            lines = list(_section_lines(value, below, changes))
            if lines:
                yield from ([""] if not path else [])
                yield f"{indent}{name}:"
                yield from lines
        elif setting is not None:
            line, key = f"{indent}{name}: {value_text(value, name, field)}", key_text(setting.key)
            why = f"{key} is absent: KernBench's default" if setting.is_default else key
            yield f"{line:<32} # {why}"
