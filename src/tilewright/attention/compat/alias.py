"""Makes ``vortex_torch`` importable, as names of ours. Nothing is loaded twice."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from tilewright.attention.compat.names import PACKAGE, SUBMODULES, package_names
from tilewright.attention.compat.torch_names import build_torch_names, torch_is_installed
from tilewright.errors import RegistryError

__all__ = ("install_vortex_alias", "remove_vortex_alias", "vortex_names")

_MARK = "__tilewright_alias__"


def install_vortex_alias() -> None:
    """Register every module path of Vortex. A second call changes nothing.

    Refuses when a real ``vortex_torch`` has been imported: one name would then have two meanings.
    """
    present = sys.modules.get(PACKAGE)
    if present is not None:
        if not hasattr(present, _MARK):
            found = f"{PACKAGE} from {getattr(present, '__file__', 'elsewhere')}, already imported"
            fix = "run flows for one of them per process"
            raise RegistryError("install_vortex_alias", found, "no such module yet", fix)
        return
    sys.modules.update(_build_modules())


def remove_vortex_alias() -> None:
    """Undo `install_vortex_alias`. Without it nothing happens; a real Vortex is left alone."""
    if not hasattr(sys.modules.get(PACKAGE), _MARK):
        return
    for name in [item for item in sys.modules if item == PACKAGE or item.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


@contextmanager
def vortex_names(*, stand_in_for_torch: bool | None = None) -> Iterator[None]:
    """The alias while the block runs, and names of torch where torch is not installed.

    ``stand_in_for_torch`` None looks whether torch is there.
    """
    was_installed = PACKAGE in sys.modules
    install_vortex_alias()
    wanted = not torch_is_installed() if stand_in_for_torch is None else stand_in_for_torch
    real = sys.modules.get("torch")
    if wanted:
        sys.modules["torch"] = build_torch_names()
    try:
        yield
    finally:
        if wanted:
            _put_back("torch", real)
        if not was_installed:
            remove_vortex_alias()


def _put_back(name: str, module: ModuleType | None) -> None:
    del sys.modules[name]
    if module is not None:
        sys.modules[name] = module


def _build_modules() -> dict[str, ModuleType]:
    made: dict[str, ModuleType] = {}
    for path, names in package_names().items():
        full = f"{PACKAGE}.{path}" if path else PACKAGE
        module = ModuleType(full, "Names of tilewright.attention under the paths of Vortex.")
        module.__dict__.update(names)
        module.__path__ = []  # a package: what is below it is found in sys.modules
        setattr(module, _MARK, True)
        made[full] = module
    made |= {f"{PACKAGE}.{path}": module for path, module in SUBMODULES.items()}
    for full, module in made.items():
        parent, _, name = full.rpartition(".")
        if parent and hasattr(made[parent], _MARK) and name not in made[parent].__dict__:
            setattr(made[parent], name, module)
    return made
