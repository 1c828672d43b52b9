"""The units of one PE as servers of an engine, with their laws beside them."""

from dataclasses import dataclass

from tilewright.device.build import Device
from tilewright.device.command import CommandProcessor
from tilewright.device.gemm import GemmUnit, build_gemm
from tilewright.device.tcm import Tcm
from tilewright.device.vector import VectorUnit, build_vector
from tilewright.engine import ServerSpec
from tilewright.machine.coords import PeCoord

__all__ = ("Pe", "build_pe")


@dataclass(frozen=True, slots=True)
class Pe:
    """What a program of this PE may occupy: a route of one server for each unit.

    The CPU takes ``issue_ps`` for a command, in order. The scheduler starts a command
    ``dispatch_ps`` after the CPU has issued it and its last operand is there; it serves all units
    side by side. At most ``window`` commands are under way.
    """

    coord: PeCoord
    name: str  # a path, "sip0.cube3.pe5"
    cpu_route: int
    vector_route: int
    gemm_route: int
    read_route: int  # the TCM's read port
    write_route: int  # its write port
    issue_ps: int
    dispatch_ps: int
    window: int
    vector: VectorUnit
    gemm: GemmUnit
    tcm: Tcm
    register_bytes: int


def build_pe(device: Device, coord: PeCoord) -> Pe:
    """Add the units of one PE to the engine of a device."""
    spec, engine = device.machine.spec.pe, device.engine
    name = f"sip{coord.sip}.cube{coord.cube}.pe{coord.pe}"

    def unit_route(server: ServerSpec) -> int:
        return engine.add_route([engine.add_server(server)])

    cpu = CommandProcessor(f"{name}.cpu", spec.cpu)
    tcm = Tcm(f"{name}.tcm", spec.tcm)
    read_port, write_port = tcm.ports()
    return Pe(
        coord,
        name,
        cpu_route=unit_route(cpu.server()),
        vector_route=unit_route(ServerSpec(f"{name}.vector")),
        gemm_route=unit_route(ServerSpec(f"{name}.gemm")),
        read_route=unit_route(read_port),
        write_route=unit_route(write_port),
        issue_ps=spec.cpu.command_ps,
        dispatch_ps=spec.scheduler.command_ps,
        window=spec.queue_commands,
        vector=build_vector(f"{name}.vector", spec.vector, spec.tcm),
        gemm=build_gemm(f"{name}.gemm", spec.gemm),
        tcm=tcm,
        register_bytes=spec.registers.capacity_bytes,
    )
