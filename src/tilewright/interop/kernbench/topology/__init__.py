"""KernBench's topology files as machines (``kernbench.topology.builder``)."""

from tilewright.interop.kernbench.topology.importing import (
    Topology,
    load_topology,
    resolve_topology,
)

__all__ = ("Topology", "load_topology", "resolve_topology")
