"""``ccl.yaml``: which algorithm, which topology, and which rings; unknown keys are refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.collectives.algorithm import AUTO_ALGORITHM, Algorithm, build_table
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.direction import Topology
from tilewright.collectives.operation import Operation
from tilewright.collectives.tuning import CHOICES, NOTHING_SAID, RING_KEYS, RingOptions
from tilewright.device.ipcq import RingSpec
from tilewright.errors import SpecError, TilewrightError
from tilewright.language.dtype import DType, dtype_of, float16
from tilewright.machine.file.yaml_text import (
    Entry,
    Items,
    Place,
    Scalar,
    Section,
    load_yaml_with_lines,
    parse_yaml,
    spec_error_at,
)
from tilewright.trust import check_code_allowed

IDLE_KEYS = MappingProxyType({"vc_chunk_size": 1, "root_cube": 0})
"""Keys of KernBench that change nothing here, each with its least value."""

COMMON_KEYS = (*RING_KEYS, "topology", "n_elem", "dtype", "world_size", "w", "h", *IDLE_KEYS)
"""Keys of ``defaults`` and of every entry."""


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

    def _checked(self, key: str, holds: Callable[[Any], bool], expected: str) -> Any:
        entry = self.entries.get(key)
        if entry is None:
            return None
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if not holds(value):
            raise self.error(key, entry, f"{value!r}", expected, "correct it")
        return value

    def text(self, key: str, choices: tuple[str, ...] = ()) -> Any:
        if choices:
            return self._checked(key, lambda it: it in choices, f"one of {', '.join(choices)}")
        return self._checked(key, lambda it: isinstance(it, str), "a text")

    def choice(self, key: str, kind: type[Enum]) -> Any:
        said = self.text(key, tuple(each.value for each in kind))
        return kind(said) if said else None

    def number(self, key: str, least: int = 1) -> Any:
        expected = f"a whole number from {least} up"
        return self._checked(key, lambda it: type(it) is int and it >= least, expected)

    def without_effect(self) -> tuple[str, ...]:
        """Return a line for each key that changes nothing here; its value is checked."""
        return tuple(
            f"{self.entries[key].place}: {self.path}.{key} has no effect here"
            for key, least in IDLE_KEYS.items()
            if self.number(key, least) is not None
        )


@dataclass(frozen=True, slots=True)
class AlgorithmEntry:
    """Settings of one algorithm in ``ccl.yaml``, or of all others (``defaults``); None: not given.

    ``module`` is kept as it is written: ``package.module:function`` is a plan function of ours, a
    module without a colon has a kernel that only its own dialect can call.
    """

    name: str
    ring: RingOptions = NOTHING_SAID
    module: str | None = None
    topology: Topology | None = None
    n_elem: int | None = None  # elements of a message
    dtype: DType | None = None  # of these elements; not said: f16
    world_size: int | None = None
    w: int | None = None  # columns of ranks
    h: int | None = None  # rows of ranks
    without_effect: tuple[str, ...] = ()  # file, line and path of keys that change nothing
    place: Place | None = None  # file and line; None: no file has it

    def over(self, base: "AlgorithmEntry") -> "AlgorithmEntry":
        """Return what is said here, and else there.

        >>> first, second = AlgorithmEntry("a", n_elem=8), AlgorithmEntry("b", n_elem=4, w=2)
        >>> both = first.over(second)
        >>> both.name, both.n_elem, both.w
        ('a', 8, 2)
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        said = {name: value for name, value in values.items() if value is not None}
        said["ring"] = self.ring.over(base.ring)
        said["without_effect"] = (*self.without_effect, *base.without_effect)
        return replace(base, **said)

    @property
    def is_foreign(self) -> bool:
        """Whether its module has a kernel in the place of a plan."""
        return self.module is not None and ":" not in self.module

    @property
    def ring_spec(self) -> RingSpec:
        """Rings as they are said, else 4 slots: of ``n_elem`` elements, or of 4 KiB."""
        if self.n_elem is None:
            return self.ring.spec()
        num_bytes = -(-self.n_elem * (self.dtype or float16).bits // 8)
        return self.ring.spec(RingSpec(slot_bytes=num_bytes))


@dataclass(frozen=True, slots=True)
class CollectiveConfig:
    """A file over the packaged one: the table of algorithms, and an entry for each that it names.

    ``defaults`` is the entry of all others.
    """

    algorithm: str
    algorithms: Mapping[str, Algorithm]
    entries: Mapping[str, AlgorithmEntry]
    defaults: AlgorithmEntry

    def entry(self, algorithm: str) -> AlgorithmEntry:
        """Return the entry of an algorithm; the defaults under its name if it has none."""
        return self.entries.get(algorithm) or replace(self.defaults, name=algorithm)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """File, line and path of every key that changes nothing here."""
        found = (self.defaults, *self.entries.values())
        return tuple(dict.fromkeys(line for entry in found for line in entry.without_effect))


def parse_config(source: str | Path | None = None) -> CollectiveConfig:
    """Read the packaged file, with what a file of the user's says instead.

    An entry goes before the defaults of its file, and both before the packaged file.

    >>> parse_config().defaults.ring.buffer_kind
    <RingKind.TCM: 'tcm'>
    >>> parse_config().entry("ring").topology
    <Topology.RING_1D: 'ring_1d'>
    """
    packaged = files("tilewright.collectives").joinpath("ccl.yaml").read_text("utf-8")
    nothing = CollectiveConfig(AUTO_ALGORITHM, ALGORITHMS, {}, AlgorithmEntry("defaults"))
    config = _over(nothing, parse_yaml(packaged, "ccl.yaml"))
    if source is None:
        return config
    return _over(config, load_yaml_with_lines(Path(source), "a ccl.yaml"))


def _over(base: CollectiveConfig, section: Section) -> CollectiveConfig:
    root = _Words("", section.entries, section.place)
    root.check_keys(("defaults", "algorithms"))
    defaults = root.section("defaults")
    defaults.check_keys(("algorithm", *COMMON_KEYS))
    own = _entry("defaults", defaults)
    said = root.section("algorithms")
    table = dict(base.algorithms)
    entries = {name: replace(own, name=name).over(old) for name, old in base.entries.items()}
    for name, place in said.entries.items():
        words = said.section(name)
        words.check_keys(("module", "operations", *COMMON_KEYS))
        entry = _entry(name, words)
        if entry.module is None and name not in table:
            expected = f"a `module`, or the name of one of {', '.join(table)}"
            fix = "say where its plan or kernel is, or correct the name"
            raise said.error(name, place, "no `module`, and no algorithm of ours", expected, fix)
        if entry.module is not None and not entry.is_foreign:
            table = dict(build_table([*table.values(), _algorithm(name, words)]))
        entries[name] = entry.over(own).over(base.entry(name))
    chosen = defaults.text("algorithm", (AUTO_ALGORITHM, *dict.fromkeys((*table, *entries))))
    return CollectiveConfig(
        chosen or base.algorithm,
        MappingProxyType(table),
        MappingProxyType(entries),
        own.over(base.defaults),
    )


def _entry(name: str, words: _Words) -> AlgorithmEntry:
    """Read one section; what it does not say is None."""
    ring = {key: words.choice(key, kind) for key, kind in CHOICES.items()}
    ring |= {key: words.number(key) for key in RING_KEYS if key not in CHOICES}
    return AlgorithmEntry(
        name,
        RingOptions(**ring),
        words.text("module"),
        words.choice("topology", Topology),
        dtype=_dtype(words),
        without_effect=words.without_effect(),
        place=words.place,
        **{key: words.number(key) for key in ("n_elem", "world_size", "w", "h")},
    )


def _dtype(words: _Words) -> DType | None:
    said = words.text("dtype")
    try:
        return None if said is None else dtype_of(said)
    except TilewrightError as error:
        entry = words.entries["dtype"]
        raise words.error("dtype", entry, f"{said!r}", error.expected, error.fix) from error


def _algorithm(name: str, words: _Words) -> Algorithm:
    entry = words.entries["module"]
    target = words.text("module") or ""
    module, _, attribute = target.partition(":")
    where = f"{entry.place}: {words.path}.module"
    check_code_allowed(where, f"{target}, a function of a module that would be imported")
    try:
        plan = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # it is the user's code, and may raise anything
        found = f"{target!r}, which cannot be imported ({type(error).__name__}: {error})"
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
