"""An algorithm of ``ccl.yaml``: its entry over the defaults, and its module."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.resources import files
from importlib.util import module_from_spec
from pathlib import Path
from traceback import walk_stack
from types import FunctionType, ModuleType
from typing import Any

from tilewright.collectives.config import parse_config
from tilewright.errors import CodeRefusedError, CollectiveError, SpecError, meant
from tilewright.interop.foreign_names import LIBRARY
from tilewright.machine.file.yaml_text import Items, Scalar, Value, load_yaml_with_lines
from tilewright.trust import check_code_allowed

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
    content = {"defaults": {}, "algorithms": {}, **_plain(tree, "", lines)}
    return CclConfig(content, file, lines, checked.without_effect)


def find_ccl_yaml() -> Path:
    """Return the file beside the program that calls, else in the working directory, else ours."""
    for folder in (caller_folder(), Path()):
        if folder is not None and (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return Path(str(files(__package__).joinpath(FILE_NAME)))


def caller_folder() -> Path | None:
    """Return the folder of the innermost running function that is not tilewright's own."""
    for frame, _ in walk_stack(sys._getframe(1)):
        file = frame.f_code.co_filename
        if not file.startswith((LIBRARY, "<")):
            return Path(file).resolve().parent
    return None


def resolve_algorithm_config(cfg: Mapping[str, Any], name: str | None = None) -> AlgorithmConfig:
    """Return the entry of an algorithm over the defaults; None is the default algorithm.

    Raises SpecError if the file names no default, has no such entry, or its entry has no module.
    """
    source = cfg if isinstance(cfg, CclConfig) else None
    defaults, entries = cfg.get("defaults") or {}, cfg.get("algorithms") or {}
    where: Callable[[str], str] = str if source is None else source.where
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
        fix = meant(name, entries, "add an entry under algorithms")
        expected = f"one of {', '.join(entries)}" if entries else "an algorithm that has an entry"
        raise SpecError(where(at), f"the algorithm {name!r}", expected, fix)
    merged = {key: value for key, value in defaults.items() if key != "algorithm"} | entries[name]
    found = AlgorithmConfig(merged, name, source)
    if "module" not in found:
        fix = "add module: kernbench.ccl.algorithms.ring_allreduce, or a module of your own"
        raise SpecError(found.where("module"), "no such key", "the module of the algorithm", fix)
    return found


def _plain(value: Value, path: str, lines: dict[str, int]) -> Any:
    """Return what a tree says without places, and note the line of each key."""
    match value:
        case Scalar():
            return value.value
        case Items():
            return [_plain(each, path, lines) for each in value.values]
    found: dict[str, Any] = {}
    for key, entry in value.entries.items():
        key_path = f"{path}.{key}" if path else key
        if entry.place.line is not None:
            lines[key_path] = entry.place.line
        found[key] = _plain(entry.value, key_path, lines)
    return found


OURS = "tilewright.interop.kernbench"
FOREIGN = "kernbench"
DTYPE = "DTYPE"  # parameter of a kernel that takes other dtypes than f16
SIP_RANK = "SIP_RANK"  # parameter of a kernel that needs its rank where ranks are SIPs

FACTS = ("cube_w", "cube_h", "n_sips", "sip_rank", "sip_topo_kind", "sip_topo_w", "sip_topo_h")
"""Names that ``kernel_args`` may take after the number of ranks and the elements of a tile."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A kernel, the function that makes its arguments, and the topology of its rings."""

    name: str
    kernel: Callable[..., Any]
    kernel_args: Callable[..., tuple[Any, ...]]
    topology: str | None  # of the module; None: it has no TOPOLOGY

    def takes(self, parameter: str) -> bool:
        """Tell whether the kernel has a parameter."""
        return parameter in inspect.signature(self.kernel).parameters

    def arguments(self, world_size: int, n_elem: int, facts: Mapping[str, int]) -> tuple[Any, ...]:
        """Return the kernel's arguments behind the tensor.

        The first two parameters of ``kernel_args`` are the number of ranks and the elements of a
        tile, whatever their names. Others get facts by name, or keep their defaults.
        """
        parameters = list(inspect.signature(self.kernel_args).parameters.values())
        wanted = {}
        for parameter in parameters[2:]:
            if parameter.name in facts:
                wanted[parameter.name] = facts[parameter.name]
            elif parameter.default is inspect.Parameter.empty:
                found = f"the parameter {parameter.name!r} of kernel_args"
                expected = f"world_size, n_elem and some of {', '.join(FACTS)}"
                fix = "rename it, or give it a default"
                raise CollectiveError(f"algorithm {self.name!r}", found, expected, fix)
        return tuple(self.kernel_args(world_size, n_elem, **wanted))


def load_algorithm(config: AlgorithmConfig) -> Algorithm:
    """Import the module of an entry: one of KernBench's, or one beside the program or the file.

    KernBench ignores a module that is missing. Here it is a SpecError with file, line and key.
    Raises CodeRefusedError for a module of others where code of files is refused.
    """
    text = config["module"]
    where = config.where("module")
    module = _import(text, where, config)
    for name in ("kernel", "kernel_args"):
        if not callable(getattr(module, name, None)):
            found, fix = f"{text!r} without a function {name}", "define kernel and kernel_args"
            raise SpecError(where, found, "a module with kernel and kernel_args", fix)
    topology = getattr(module, "TOPOLOGY", None)
    return Algorithm(config.name, module.kernel, module.kernel_args, topology)


def _import(text: str, where: str, config: AlgorithmConfig) -> ModuleType:
    expected = "a module beside the program, or one of kernbench.ccl.algorithms"
    package, _, rest = text.partition(".")
    if not all(part.isidentifier() for part in text.split(".")):
        raise SpecError(where, repr(text), expected, "write it like package.module")
    try:
        if package == FOREIGN:  # code of the package itself
            return import_module(f"{OURS}.{rest}")
        check_code_allowed(where, f"{text}, a module that would be imported")
        folders = [] if config.source is None else [config.source.path.resolve().parent]
        beside = caller_folder()
        return _import_beside(text, folders + ([] if beside is None else [beside]))
    except CodeRefusedError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's code, and may raise anything
        found = f"the module {text!r}, which cannot be imported ({type(error).__name__}: {error})"
        raise SpecError(where, found, expected, "correct the name, or add the file") from error


def _import_beside(text: str, folders: list[Path]) -> ModuleType:
    """Import a module from one of the folders, else from where Python finds it.

    A module from a folder is made anew unless the program has imported the same file: two programs
    of one process may have files of one name.
    """
    spec = None if "." in text else PathFinder.find_spec(text, list(map(str, folders)))
    if spec is None or spec.loader is None:
        return import_module(text)
    known = sys.modules.get(text)
    if known is not None and getattr(known, "__file__", None) == spec.origin:
        return known
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_defaults(kernel: Callable[..., Any], constants: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a copy of a function whose named parameters have other defaults."""
    if not isinstance(kernel, FunctionType):
        fix = "define it with def"
        raise CollectiveError("kernel", repr(kernel), "a plain function", fix)
    code, scope = kernel.__code__, kernel.__globals__
    made = FunctionType(code, scope, kernel.__name__, closure=kernel.__closure__)
    made.__kwdefaults__ = {**(kernel.__kwdefaults__ or {})} or None
    made.__module__, made.__qualname__ = kernel.__module__, kernel.__qualname__
    defaults = list(kernel.__defaults__ or ())
    parameters = code.co_varnames[: code.co_argcount]
    for name, value in constants.items():
        if name in parameters:
            defaults[parameters.index(name) - len(parameters)] = value
        else:
            made.__kwdefaults__ = {**(made.__kwdefaults__ or {}), name: value}
    made.__defaults__ = tuple(defaults)
    return made
