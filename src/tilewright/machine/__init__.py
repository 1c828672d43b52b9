"""What the hardware is: spec, coordinates, topology, routes, addresses."""

from tilewright.machine.build import Machine, build_machine, machine_hash
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.machine.parse import load_machine, parse_machine, parse_machine_text
from tilewright.machine.presets import list_presets
from tilewright.machine.spec import MachineSpec

__all__ = (
    "CubeCoord",
    "Machine",
    "MachineSpec",
    "PeCoord",
    "SipCoord",
    "build_machine",
    "list_presets",
    "load_machine",
    "machine_hash",
    "parse_machine",
    "parse_machine_text",
)
