"""``ccl.yaml``: which algorithm, and which rings. Read strictly: what is not known is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from tilewright.collectives.operation import Operation
from tilewright.collectives.option import RING_KEYS, RingOptions
from tilewright.collectives.table import ALGORITHMS, AUTO_ALGORITHM, Algorithm, build_table
from tilewright.device.ipcq import Backpressure, RingKind
from tilewright.errors import SpecError
from tilewright.machine.yaml_text import (
    Entry,
    Items,
    Place,
    Scalar,
    Section,
    load_yaml_with_lines,
    parse_yaml,
    spec_error_at,
)

__all__ = ("CollectiveConfig", "parse_config")

ENTRY_KEYS = (*RING_KEYS, "world_size", "module", "operations")


@dataclass(frozen=True, slots=True)
class _Words:
    """One section: its path in the file, its keys, and where it stands."""

    path: str
    entries: Mapping[str, Entry]
    place: Place

    def check_keys(self, known: tuple[str, ...]) -> None:
        for key, entry in self.entries.items():
            if key not in known:
                expected = f"one of {', '.join(known)}"
                raise self.error(key, entry, "an unknown key", expected, "correct or remove it")

    def error(self, key: str, entry: Entry, found: str, expected: str, fix: str) -> SpecError:
        path = f"{self.path}.{key}" if self.path else key
        return spec_error_at(entry.place, path, found, expected, fix)

    def section(self, key: str) -> "_Words":
        entry = self.entries.get(key)
        path = f"{self.path}.{key}" if self.path else key
        if entry is None:
            return _Words(path, {}, self.place)
        if not isinstance(entry.value, Section):
            raise self.error(key, entry, "a single value", "keys with values", "indent them")
        return _Words(path, entry.value.entries, entry.place)

    def text(self, key: str, choices: tuple[str, ...] = ()) -> str | None:
        entry = self.entries.get(key)
        if entry is None:
            return None
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if not isinstance(value, str) or (choices and value not in choices):
            expected = f"one of {', '.join(choices)}" if choices else "a text"
            raise self.error(key, entry, f"{value!r}", expected, "correct it")
        return value

    def number(self, key: str) -> int | None:
        entry = self.entries.get(key)
        if entry is None:
            return None
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(key, entry, f"{value!r}", "a whole number from 1 up", "correct it")
        return value


@dataclass(frozen=True, slots=True)
class CollectiveConfig:
    """A file over the packaged one: rings and worlds by algorithm, and the table of algorithms."""

    algorithm: str
    ring: RingOptions
    algorithms: Mapping[str, Algorithm]
    rings: Mapping[str, RingOptions]
    world_sizes: Mapping[str, int]

    def ring_of(self, algorithm: str) -> RingOptions:
        return self.rings.get(algorithm, self.ring)


def parse_config(source: str | Path | None = None) -> CollectiveConfig:
    """The packaged file, with what a file of the user's says instead.

    >>> parse_config().ring.buffer_kind
    <RingKind.TCM: 'tcm'>
    """
    packaged = files("tilewright.collectives").joinpath("ccl.yaml").read_text("utf-8")
    base = _root(parse_yaml(packaged, "ccl.yaml"))
    config = _over(CollectiveConfig(AUTO_ALGORITHM, RingOptions(), ALGORITHMS, {}, {}), base)
    if source is None:
        return config
    return _over(config, _root(load_yaml_with_lines(Path(source))))


def _root(section: Section) -> _Words:
    return _Words("", section.entries, section.place)


def _over(base: CollectiveConfig, root: _Words) -> CollectiveConfig:
    root.check_keys(("defaults", "algorithms"))
    defaults = root.section("defaults")
    defaults.check_keys(("algorithm", *RING_KEYS))
    ring = _ring(base.ring, defaults)
    entries = root.section("algorithms")
    table, rings, sizes = dict(base.algorithms), dict(base.rings), dict(base.world_sizes)
    for name, entry in entries.entries.items():
        words = entries.section(name)
        words.check_keys(ENTRY_KEYS)
        if "module" in words.entries:
            table = dict(build_table([*table.values(), _algorithm(name, words)]))
        elif name not in table:
            expected = f"one of {', '.join(table)}, or an entry with `module`"
            raise entries.error(name, entry, "an algorithm that nobody has", expected, "correct it")
        rings[name] = _ring(ring, words)
        size = words.number("world_size")
        if size is not None:
            sizes[name] = size
    chosen = defaults.text("algorithm", (AUTO_ALGORITHM, *table)) or base.algorithm
    return CollectiveConfig(
        chosen, ring, MappingProxyType(table), MappingProxyType(rings), MappingProxyType(sizes)
    )


def _ring(base: RingOptions, words: _Words) -> RingOptions:
    kind = words.text("buffer_kind", tuple(each.value for each in RingKind))
    pressure = words.text("backpressure", tuple(each.value for each in Backpressure))
    said = RingOptions(
        RingKind(kind) if kind else None,
        Backpressure(pressure) if pressure else None,
        words.number("n_slots"),
        words.number("slot_size"),
        words.number("ipcq_credit_size_bytes"),
    )
    return said.over(base)


def _algorithm(name: str, words: _Words) -> Algorithm:
    entry = words.entries["module"]
    target = words.text("module") or ""
    module, _, attribute = target.partition(":")
    try:
        plan = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        found = f"{target!r}, which cannot be imported ({error})"
        fix = "name an importable module and a function in it"
        raise words.error("module", entry, found, "package.module:function", fix) from error
    if not callable(plan):
        found, fix = f"{target!r}, which cannot be called", "name the function that writes plans"
        raise words.error("module", entry, found, "package.module:function", fix)
    return Algorithm(name, _operations(words), plan)


def _operations(words: _Words) -> frozenset[Operation]:
    entry = words.entries.get("operations")
    if entry is None:
        return frozenset((Operation.ALL_REDUCE,))
    names = {each.value: each for each in Operation}
    found = entry.value.values if isinstance(entry.value, Items) else (entry.value,)
    values = [each.value if isinstance(each, Scalar) else None for each in found]
    for value in values:
        if value not in names:
            expected = f"some of {', '.join(names)}"
            raise words.error("operations", entry, f"{value!r}", expected, "correct it")
    return frozenset(names[str(value)] for value in values)
