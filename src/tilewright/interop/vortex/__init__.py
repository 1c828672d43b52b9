"""Vortex: its module paths and names for flow files, and the entries that load such files."""

from tilewright.interop.vortex.alias import (
    build_vflow,
    check_engine_config,
    find_flow,
    install_vortex_alias,
    load_flows,
    remove_vortex_alias,
    session_of_config,
    vortex_names,
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
