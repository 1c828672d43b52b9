"""``vortex_torch`` as names of ours: for a file, for a block, for a session or a whole process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import tilewright.attention.flow as our_flow
import tilewright.attention.verify as our_verify
from tilewright.attention.backends import reference
from tilewright.interop.foreign_names import ForeignNames
from tilewright.interop.vortex.names import (
    PACKAGE,
    build_torch_names,
    torch_is_installed,
    vortex_table,
)


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


build_vflow = partial(our_flow.build_vflow, names=vortex_names)
"""Build the flow registered under a name: by the file if one is given, else by an import.

The file may import tilewright's names or Vortex's.
"""
load_flows = partial(our_flow.load_flows, names=vortex_names)
"""Run a flow file and return the flows that it registers, at least one.

The file may import tilewright's names or Vortex's, also inside its functions.
"""
find_flow = partial(our_flow.find_flow, names=vortex_names)
"""Return a ready flow by name, or the flow of a file (``name`` picks one of several).

Whatever ends in ``.py`` or has a path separator is a file, as in `load_flows`.
"""
session_of_config = partial(reference.session_of_config, names=vortex_names)
"""Build what a config asks for on the reference backend; ``module_path`` as in `load_flows`."""
check_engine_config = partial(our_verify.check_engine_config, names=vortex_names)
"""Make all checks of a config ahead of an engine; ``module_path`` as in `load_flows`."""


def _put_back(name: str, module: ModuleType | None) -> None:
    del sys.modules[name]
    if module is not None:
        sys.modules[name] = module


_VORTEX = ForeignNames(PACKAGE, vortex_table(build_vflow))
