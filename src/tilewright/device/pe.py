"""The units of one PE, as servers of an engine."""

from dataclasses import dataclass

from tilewright.device.build import Device
from tilewright.device.gemm import GemmUnit, build_gemm
from tilewright.device.vector import VectorUnit, build_vector
from tilewright.engine import ServerSpec
from tilewright.engine.issuer import IssuerSpec
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name


@dataclass(frozen=True, slots=True)
class Pe:
    """What a program of this PE may occupy: a route of one server for each unit.

    The CPU issues commands in order. The scheduler starts a command when the CPU has issued it and
    its last operand is there, and serves all units side by side. Values lie in the register file
    and, beyond it, in the TCM.
    """

    coord: PeCoord
    name: str  # a path, "sip0.cube3.pe5"
    vector_route: int
    gemm_route: int
    vector: VectorUnit
    gemm: GemmUnit
    issuer: IssuerSpec


def build_pe(device: Device, coord: PeCoord) -> Pe:
    """Add the units of one PE to the engine of a device."""
    spec, engine = device.machine.spec.pe, device.engine
    name = place_name(coord)

    def unit_route(server: ServerSpec) -> int:
        return engine.add_route([engine.add_server(server)])

    ports = device.tcm_servers(coord)
    return Pe(
        coord,
        name,
        vector_route=unit_route(ServerSpec(f"{name}.vector")),
        gemm_route=unit_route(ServerSpec(f"{name}.gemm")),
        vector=build_vector(f"{name}.vector", spec.vector, spec.tcm),
        gemm=build_gemm(f"{name}.gemm", spec.gemm),
        issuer=IssuerSpec(
            issue_route=unit_route(ServerSpec(f"{name}.cpu")),
            issue_ps=spec.cpu.command_ps,
            dispatch_ps=spec.scheduler.command_ps,
            window=spec.queue_commands,
            read_route=engine.add_route([ports.read]),
            read_bytes_per_us=spec.tcm.read_bytes_per_us,
            write_route=engine.add_route([ports.write]),
            write_bytes_per_us=spec.tcm.write_bytes_per_us,
            near_bytes=spec.registers.capacity_bytes,
            far_bytes=spec.tcm.capacity_bytes - spec.tcm.reserved_bytes,
            hit_ps=spec.mmu.hit_ps,
            walk_ps=spec.mmu.walk_ps,
        ),
    )
