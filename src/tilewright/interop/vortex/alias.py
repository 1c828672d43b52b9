"""``vortex_torch`` as names of ours: for a file, for a block, for a session or a whole process."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import tilewright.attention.flow as our_flow
import tilewright.attention.verify as our_verify
from tilewright.attention.backends import reference
from tilewright.attention.flow import FlowBase
from tilewright.attention.flow.config import VortexConfig
from tilewright.attention.graph import DType
from tilewright.interop.foreign_names import ForeignNames
from tilewright.interop.vortex.names import (
    PACKAGE,
    build_torch_names,
    torch_is_installed,
    vortex_table,
)
from tilewright.models import ModelShape


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


def load_flows(path: str | Path) -> Mapping[str, type[FlowBase]]:
    """Run a flow file and return the flows that it registers, at least one.

    The file may import tilewright's names or Vortex's, also inside its functions.
    """
    return our_flow.load_flows(path, vortex_names)


def find_flow(
    flow: str, init_kwargs: Mapping[str, object] | None = None, *, name: str | None = None
) -> tuple[str, FlowBase]:
    """Return a ready flow by name, or the flow of a file (``name`` picks one of several).

    Whatever ends in ``.py`` or has a path separator is a file, as in `load_flows`.
    """
    return our_flow.find_flow(flow, init_kwargs, name=name, names=vortex_names)


def session_of_config(
    config: VortexConfig,
    shape: ModelShape,
    *,
    num_requests: int = 1,
    kv_dtype: DType = DType.BFLOAT16,
    namespace: str = "numpy",
) -> reference.Session:
    """Build what a config asks for on the reference backend; ``module_path`` as in `load_flows`."""
    return reference.session_of_config(
        config,
        shape,
        num_requests=num_requests,
        kv_dtype=kv_dtype,
        namespace=namespace,
        names=vortex_names,
    )


def check_engine_config(
    config: VortexConfig | Mapping[str, Any] | str, **model: Any
) -> tuple[our_verify.ConfigCheck, ...]:
    """Make all checks of a config ahead of an engine; ``module_path`` as in `load_flows`."""
    return our_verify.check_engine_config(config, names=vortex_names, **model)
