"""KernBench contexts on small machines, for tests."""

from typing import Any

from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.engine import GraphEngine, spec_of_machine
from tilewright.interop.kernbench.topology import resolve_topology
from tilewright.machine.build import Machine

__all__ = ("context", "two_sips")


def two_sips() -> Machine:
    """Return a machine of 2 SIPs with 2 x 1 cubes of 4 PEs."""
    return resolve_topology(
        {
            "system": {"sips": {"count": 2, "cubes_per_sip": 2}},
            "sip": {"cube_mesh": {"w": 2, "h": 1}},
            "cube": {
                "pe_layout": {"corners": ["NW", "NE", "SW", "SE"], "pe_per_corner": 1},
                "memory_map": {"hbm_slices_per_cube": 4},
            },
        }
    ).machine


def context(
    machine: Machine | str = "ahbm-small", device: str = "all", **options: Any
) -> RuntimeContext:
    """Return a KernBench context on a machine; options are those of our own contexts."""
    host = HostContext(machine, **options)
    return RuntimeContext(GraphEngine.of_host(host), device, "test", spec_of_machine(host.machine))
