"""Vortex: its module paths and names for flow files, and the entries that load such files."""

from tilewright.interop.vortex.alias import (
    build_vflow,
    install_vortex_alias,
    remove_vortex_alias,
    vortex_names,
)
from tilewright.interop.vortex.load import (
    check_engine_config,
    find_flow,
    load_flows,
    session_of_config,
)

__all__ = (
    "build_vflow",
    "check_engine_config",
    "find_flow",
    "install_vortex_alias",
    "load_flows",
    "remove_vortex_alias",
    "session_of_config",
    "vortex_names",
)
