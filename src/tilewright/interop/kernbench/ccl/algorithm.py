"""An algorithm's module, by its name in ``ccl.yaml``: its kernel and the kernel's arguments."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tilewright.errors import CodeRefusedError, CollectiveError, SpecError
from tilewright.interop.kernbench.ccl.config import AlgorithmConfig, caller_folder
from tilewright.trust import check_code_allowed

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

    def kernel_with(self, **constants: Any) -> Callable[..., Any]:
        """Return the kernel with other defaults for some of its parameters."""
        return with_defaults(self.kernel, constants) if constants else self.kernel


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
    made = FunctionType(
        kernel.__code__,
        kernel.__globals__,
        kernel.__name__,
        kernel.__defaults__,
        kernel.__closure__,
    )
    made.__kwdefaults__ = {**(kernel.__kwdefaults__ or {})} or None
    made.__module__, made.__qualname__ = kernel.__module__, kernel.__qualname__
    defaults = list(kernel.__defaults__ or ())
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    for name, value in constants.items():
        if name in names:
            defaults[names.index(name) - len(names)] = value
        else:
            made.__kwdefaults__ = {**(made.__kwdefaults__ or {}), name: value}
    made.__defaults__ = tuple(defaults)
    return made
