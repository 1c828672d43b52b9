"""``ccl.yaml`` as KernBench programs see it: dictionaries, and one merged for an algorithm."""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from tilewright.collectives.config import parse_config
from tilewright.errors import SpecError
from tilewright.interop.foreign_names import LIBRARY
from tilewright.machine.file.yaml_text import Scalar, Section, Value, load_yaml_with_lines

FILE_NAME = "ccl.yaml"


class CclConfig(dict[str, Any]):
    """A whole file: ``defaults`` and ``algorithms``. ``path`` is where it was found."""

    def __init__(
        self,
        content: Mapping[str, Any],
        path: Path,
        lines: Mapping[str, int],
        without_effect: tuple[str, ...] = (),
    ) -> None:
        super().__init__(content)
        self.path = path
        self.lines = lines  # by path of keys, joined by dots
        self.without_effect = without_effect  # file, line and path of keys that change nothing

    def where(self, key_path: str) -> str:
        """Return file, line and key for an error; the line of the nearest key that exists."""
        known = key_path
        while known and known not in self.lines:
            known = known.rpartition(".")[0]
        line = f" line {self.lines[known]}" if known else ""
        return f"{self.path}{line}: {key_path}"


class AlgorithmConfig(dict[str, Any]):
    """An algorithm's entry over the defaults; ``name`` is the entry's."""

    def __init__(self, content: Mapping[str, Any], name: str, source: CclConfig | None) -> None:
        super().__init__(content)
        self.name = name
        self.source = source

    @classmethod
    def of_mapping(cls, merged: Mapping[str, Any]) -> "AlgorithmConfig":
        """Return a merged entry as it is, or a user's own dictionary as one without a file."""
        if isinstance(merged, AlgorithmConfig):
            return merged
        name = str(merged.get("algorithm", merged.get("module", "algorithm")))
        return cls(merged, name, None)

    def where(self, key: str = "") -> str:
        """Return what an error about a key of the entry begins with."""
        path = ".".join(filter(None, ("algorithms", self.name, key)))
        return path if self.source is None else self.source.where(path)


def load_ccl_config(path: str | Path | None = None) -> CclConfig:
    """Read a ``ccl.yaml``; without a path the one that `find_ccl_yaml` finds.

    Raises SpecError with file, line and key for what is unknown or has a wrong value.

    >>> load_ccl_config()["defaults"]["algorithm"]
    'intercube_allreduce'
    """
    file = find_ccl_yaml() if path is None else Path(path)
    tree = load_yaml_with_lines(file, "a ccl.yaml")
    checked = parse_config(file)  # refuses unknown keys and wrong values
    lines: dict[str, int] = {}
    content = {"defaults": {}, "algorithms": {}} | _plain(tree, "", lines)
    return CclConfig(content, file, lines, checked.without_effect)


def find_ccl_yaml() -> Path:
    """Return the file beside the program that calls, else in the working directory, else ours."""
    for folder in (caller_folder(), Path()):
        if folder is not None and (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return Path(str(files(__package__).joinpath(FILE_NAME)))


def caller_folder() -> Path | None:
    """Return the folder of the innermost running function that is not tilewright's own."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((LIBRARY, "<")):
            return Path(file).resolve().parent
        frame = frame.f_back  # type: ignore[assignment]
    return None


def resolve_algorithm_config(cfg: Mapping[str, Any], name: str | None = None) -> AlgorithmConfig:
    """Return the entry of an algorithm over the defaults; None is the default algorithm.

    Raises SpecError if the file names no default, has no such entry, or its entry has no module.
    """
    source = cfg if isinstance(cfg, CclConfig) else None
    defaults, entries = cfg.get("defaults") or {}, cfg.get("algorithms") or {}

    def where(key_path: str) -> str:
        return key_path if source is None else source.where(key_path)

    if name is None:
        name = defaults.get("algorithm")
        if name is None:
            fix = "add it, or name an algorithm in the call"
            expected = f"the name of an algorithm: {', '.join(entries) or 'none has an entry'}"
            raise SpecError(where("defaults.algorithm"), "no such key", expected, fix)
        at = "defaults.algorithm"
    else:
        at = "algorithms"
    if name not in entries:
        near = get_close_matches(str(name), entries, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "add an entry under algorithms"
        expected = f"one of {', '.join(entries)}" if entries else "an algorithm that has an entry"
        raise SpecError(where(at), f"the algorithm {name!r}", expected, fix)
    merged = {key: value for key, value in defaults.items() if key != "algorithm"} | entries[name]
    found = AlgorithmConfig(merged, name, source)
    if "module" not in found:
        fix = "add module: kernbench.ccl.algorithms.ring_allreduce, or a module of your own"
        raise SpecError(found.where("module"), "no such key", "the module of the algorithm", fix)
    return found


def _plain(section: Section, path: str, lines: dict[str, int]) -> dict[str, Any]:
    """Return a section as a dictionary, and note the line of each key."""
    found: dict[str, Any] = {}
    for key, entry in section.entries.items():
        key_path = f"{path}.{key}" if path else key
        if entry.place.line is not None:
            lines[key_path] = entry.place.line
        found[key] = _value(entry.value, key_path, lines)
    return found


def _value(value: Value, path: str, lines: dict[str, int]) -> Any:
    if isinstance(value, Section):
        return _plain(value, path, lines)
    if isinstance(value, Scalar):
        return value.value
    return [_value(each, path, lines) for each in value.values]
