"""``vortex_torch`` as names of ours: for a file, for a block, or for a whole process."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import tilewright.attention.flow as our_flow
from tilewright.attention.flow import FlowBase
from tilewright.interop.foreign_names import ForeignNames
from tilewright.interop.vortex.names import PACKAGE, vortex_table
from tilewright.interop.vortex.torch_names import build_torch_names, torch_is_installed


@contextmanager
def vortex_names(*, stand_in_for_torch: bool | None = None) -> Iterator[None]:
    """Make ``vortex_torch`` importable while the block runs, and ``torch`` if it is not installed.

    The latter has names for annotations and element types. ``stand_in_for_torch`` None looks
    whether torch is there. Raises RegistryError if a real ``vortex_torch`` has been imported.
    """
    wanted = not torch_is_installed() if stand_in_for_torch is None else stand_in_for_torch
    with _VORTEX.installed():
        real = sys.modules.get("torch")
        if wanted:
            sys.modules["torch"] = build_torch_names()
        try:
            yield
        finally:
            if wanted:
                _put_back("torch", real)


def install_vortex_alias() -> None:
    """Make ``vortex_torch`` importable in this process until `remove_vortex_alias`.

    A second call changes nothing. Raises RegistryError if a real ``vortex_torch`` has been
    imported: one name would have two meanings.
    """
    _VORTEX.install()


def remove_vortex_alias() -> None:
    """Undo `install_vortex_alias`. Without it nothing happens; a real Vortex is left alone."""
    _VORTEX.remove()


def build_vflow(
    selected: str,
    init_kwargs: Mapping[str, object] | None = None,
    user_file: str | Path | None = None,
) -> FlowBase:
    """Build the flow registered as ``selected``: by the file if one is given, else by an import.

    The file may import tilewright's names or Vortex's.
    """
    return our_flow.build_vflow(selected, init_kwargs, user_file, names=vortex_names)


def _put_back(name: str, module: ModuleType | None) -> None:
    del sys.modules[name]
    if module is not None:
        sys.modules[name] = module


_VORTEX = ForeignNames(PACKAGE, vortex_table(build_vflow))
