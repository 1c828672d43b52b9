"""The PE and the cube of a kernel's instance, by the machine's own numbers."""

from typing import Any

from tilewright.executor.program import running_program
from tilewright.language.executor import current_program


def program_id(axis: int = 0) -> int:
    """Return the PE's number in its cube (axis 0), or the cube's in its SIP (axis 1)."""
    coord = running_program().stream.pe.coord
    return coord.pe if _is_pe_axis(axis) else coord.cube


def num_programs(axis: int = 0) -> int:
    """Return how many PEs of this cube the launch targets (0), or a SIP's cubes (1).

    The cubes are the machine's, even if the launch targets fewer of them.
    """
    program = running_program()
    if not _is_pe_axis(axis):
        return program.run.device.machine.grid.num_cubes_per_sip
    here = program.stream.pe.coord.cube_coord
    return len({stream.pe.coord for stream in program.run.streams
                if stream.pe.coord.cube_coord == here})  # fmt: skip


def _is_pe_axis(axis: Any) -> bool:
    if type(axis) is not int or axis not in (0, 1):
        fix = "name 0 or 1; pass the SIP, which is the rank, as an argument"
        expected = "0, the PE in its cube, or 1, the cube in its SIP"
        raise current_program().error(f"the axis {axis!r}", expected, fix)
    return axis == 0
