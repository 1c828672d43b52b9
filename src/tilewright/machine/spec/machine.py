"""The whole machine; its defaults are the machine ``ahbm``."""

from typing import Annotated, Literal

from pydantic import Field

from tilewright.machine.spec.block import BlockSpec
from tilewright.machine.spec.hbm import HbmSpec, SramSpec
from tilewright.machine.spec.link import FabricSpec, HostSpec, UcieSpec
from tilewright.machine.spec.noc import MeshSpec, NocSpec
from tilewright.machine.spec.pe import CommandProcessorSpec, PeSpec
from tilewright.machine.spec.quantity import BytesPerUs, Count, Latency, Micrometres, Size, Spec

__all__ = ("AddressSpec", "CubeSpec", "IoChipletSpec", "MachineSpec", "SipSpec")

Bits = Annotated[int, Field(ge=1, le=51)]


class AddressSpec(Spec):
    """The fields of a physical address, from the highest bit; their sum is its width."""

    sip_bits: Bits = Field(4, description="which SIP")
    die_bits: Bits = Field(5, description="which die: cubes first, then IO chiplets")
    offset_bits: Bits = Field(42, description="inside the die")


class IoChipletSpec(BlockSpec):
    """Joins a SIP's first row of cubes, its host link and its links to other SIPs."""

    noc_ps: Latency = Field(1_000, description="latency of the chiplet's crossbar")
    buffer_bytes: Size = Field(8_192, description="input buffer per virtual channel")
    attach_bytes_per_us: BytesPerUs = Field(128_000, description="IO processor to crossbar")
    cpu: CommandProcessorSpec = CommandProcessorSpec(command_ps=10_000)


class SipSpec(Spec):
    """One package: a mesh of cubes and an IO chiplet at its north side."""

    count: Count = Field(2, description="SIPs of the machine")
    columns: Count = Field(4, description="cubes in a row")
    rows: Count = Field(4, description="rows of cubes")
    io: IoChipletSpec | None = Field(
        IoChipletSpec(), description="null: a single die with the host link on its own network"
    )


class CubeSpec(Spec):
    """One die: PEs, memory and a network."""

    pes: Count = Field(8, description="PEs; each owns one slice of the memory")
    noc: NocSpec = MeshSpec()
    ucie: UcieSpec | None = Field(UcieSpec(), description="null: a die without neighbours")
    hbm: HbmSpec = HbmSpec()
    sram: SramSpec = SramSpec()
    m_cpu: CommandProcessorSpec = CommandProcessorSpec(command_ps=5_000)
    m_cpu_position_um: tuple[Micrometres, Micrometres] = Field(
        (7_500, 2_000), description="x and y on the die"
    )
    sram_position_um: tuple[Micrometres, Micrometres] = Field(
        (1_500, 9_000), description="x and y on the die"
    )
    attach_um: Micrometres = Field(300, description="wire from a router to what sits on it")


class MachineSpec(Spec):
    """One machine. Every field has its unit in its name, its bounds and its only default."""

    name: str = Field("ahbm", description="what tables and records call it")
    description: str = Field("", description="one line for people")
    routing: Literal["xy"] = Field("xy", description="turn rule of every mesh")
    packet_bytes: Size = Field(1_024, description="unit of arbitration")
    flit_bytes: Size = Field(64, description="unit of the wire")
    ps_per_mm: Annotated[int, Field(ge=0, le=10**6)] = Field(10, description="wire delay")
    host: HostSpec = HostSpec()
    fabric: FabricSpec = FabricSpec()
    sip: SipSpec = SipSpec()
    cube: CubeSpec = CubeSpec()
    pe: PeSpec = PeSpec()
    address: AddressSpec = AddressSpec()
