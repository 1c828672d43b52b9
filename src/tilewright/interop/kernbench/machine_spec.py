"""A machine as the mapping that KernBench programs read: ``torch.spec``."""

from collections.abc import Mapping
from typing import Any

from tilewright.interop.kernbench.value import ValueProgramError
from tilewright.machine.build import Machine

CORNERS = ("NW", "NE", "SW", "SE")
COUNTS = (
    ("system", "sips", "count"),
    ("system", "sips", "cubes_per_sip"),
    ("sip", "cube_mesh", "w"),
    ("sip", "cube_mesh", "h"),
    ("cube", "pe_layout", "pe_per_corner"),
)
"""Keys of counts that a spec and its machine share."""


def spec_of_machine(machine: Machine) -> dict[str, Any]:
    """Return the counts and sizes of a machine under the keys of a KernBench topology."""
    grid, spec = machine.grid, machine.spec
    num_pes = grid.num_pes_per_cube
    corners = list(CORNERS) if num_pes % len(CORNERS) == 0 else [CORNERS[0]]
    mesh = spec.sip
    return {
        "system": {"sips": {"count": grid.num_sips, "cubes_per_sip": grid.num_cubes_per_sip}},
        "sip": {"cube_mesh": {"w": mesh.columns, "h": mesh.rows}},
        "cube": {
            "pe_layout": {"corners": corners, "pe_per_corner": num_pes // len(corners)},
            "memory_map": {
                "hbm_total_gb_per_cube": machine.addresses.slice_bytes * num_pes / (1 << 30),
                "hbm_slices_per_cube": num_pes,
            },
            "pe_template": {
                "components": {
                    "pe_tcm": {"attrs": {"size_mb": spec.pe.tcm.capacity_bytes / (1 << 20)}},
                    "pe_mmu": {"attrs": {"page_size": spec.pe.mmu.page_bytes}},
                }
            },
        },
    }


def check_spec(spec: Mapping[str, Any], machine: Machine) -> None:
    """Refuse the spec of another machine: counts that it says and the engine does not have."""
    there = spec_of_machine(machine)
    for path in COUNTS:
        said = _at(spec, path)
        if said is not None and said != _at(there, path):
            found = f"{'.'.join(path)}={said!r}"
            expected = f"{_at(there, path)!r}, as the engine's machine has"
            raise ValueProgramError("spec", found, expected, "pass spec=graph.spec of its graph")


def _at(spec: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = spec
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
