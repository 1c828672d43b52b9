"""A table from Vortex's module paths and names to ours, for flow files that were written for it."""

from tilewright.attention.compat.alias import (
    install_vortex_alias,
    remove_vortex_alias,
    vortex_names,
)
from tilewright.attention.compat.load import find_flow, load_flows

__all__ = (
    "find_flow",
    "install_vortex_alias",
    "load_flows",
    "remove_vortex_alias",
    "vortex_names",
)
