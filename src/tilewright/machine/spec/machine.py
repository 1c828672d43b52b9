"""The whole machine; its defaults are the machine ``ahbm``."""

from collections.abc import Iterator
from typing import Annotated, Literal, assert_never

from pydantic import Field

from tilewright.limits import MAX_CHANNELS, MAX_FLIT_BYTES, MAX_PACKETS, max_channel_bursts
from tilewright.machine.spec.field import (
    BrokenRule,
    Count,
    Micrometres,
    Size,
    Spec,
    is_power_of_two,
    walk_sections,
)
from tilewright.machine.spec.hbm import HbmSpec, SramSpec
from tilewright.machine.spec.network import (
    CrossbarSpec,
    FabricSpec,
    HostSpec,
    IoChipletSpec,
    MeshSpec,
    NocSpec,
    RingSpec,
    UcieSpec,
)
from tilewright.machine.spec.pe import CommandProcessorSpec, PeSpec

ONE_LINE = r"^[^\t\n\r]*$"
PacketSize = Annotated[Size, Field(le=MAX_FLIT_BYTES)]
Bits = Annotated[int, Field(ge=1, le=51)]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=ONE_LINE)]
Description = Annotated[str, Field(max_length=400, pattern=ONE_LINE)]

MAX_ADDRESS_BITS = 63  # an address stays an int64
COMPUTE_WINDOW_BYTES = 2**38  # what a die with PEs uses of its offsets; HBM has the lower half
MIN_TILE_BYTES = 16 * 2**10  # of a TCM, beside its reserve; see _room_rules
MIN_REGISTER_BYTES = 1024
MIN_PAGE_BYTES = 512
MIN_RING_BYTES = 64  # of a TCM's reserve, for the messages of each SIP
MIN_RESERVED_BYTES = 1024
MIN_SLICE_BYTES = 2**20
MIN_SLICE_PAGES = 16
MAX_NODES = 10**6  # beyond that a file is a mistake, and building it would take minutes


class AddressSpec(Spec):
    """The fields of a physical address, from the highest bit; their sum is its width."""

    sip_bits: Bits = Field(4, description="which SIP")
    die_bits: Bits = Field(5, description="which die: cubes first, then IO chiplets")
    offset_bits: Bits = Field(42, description="inside the die")

    def broken_rules(self) -> Iterator[BrokenRule]:
        total = self.sip_bits + self.die_bits + self.offset_bits
        if total > MAX_ADDRESS_BITS:
            found = f"{total} bits in all with sip_bits and die_bits"
            expected = f"at most {MAX_ADDRESS_BITS}"
            related = ("sip_bits", "die_bits")
            yield BrokenRule("offset_bits", found, expected, "give a field fewer bits", related)


class SipSpec(Spec):
    """One package: a mesh of cubes, an IO chiplet at its north side, and the IO processor.

    Without an IO chiplet the IO processor sits on the die's own network, beside the M_CPU.
    """

    count: Count = Field(2, description="SIPs of the machine")
    columns: Count = Field(4, description="cubes in a row")
    rows: Count = Field(4, description="rows of cubes")
    io: IoChipletSpec | None = Field(
        IoChipletSpec(), description="null: a single die with the host link on its own network"
    )
    io_cpu: CommandProcessorSpec = CommandProcessorSpec(command_ps=10_000)

    @property
    def num_cubes(self) -> int:
        """Of one SIP."""
        return self.columns * self.rows

    def broken_rules(self) -> Iterator[BrokenRule]:
        if self.io is not None:
            return
        parts = [f"{self.count} SIPs"] * (self.count > 1)
        parts += [f"{self.num_cubes} cubes a SIP"] * (self.num_cubes > 1)
        if parts:
            found = f"no IO chiplet with {' and '.join(parts)}"
            expected = "an IO chiplet, since it joins them"
            fix = "remove `io: null`, or set count, columns and rows to 1"
            yield BrokenRule("io", found, expected, fix, ("count", "columns", "rows"))


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

    @property
    def pseudo_channels_per_slice(self) -> int:
        return self.hbm.pseudo_channels // self.pes

    def broken_rules(self) -> Iterator[BrokenRule]:
        channels, each = self.hbm.pseudo_channels, self.pseudo_channels_per_slice
        found, fix = f"{each} for each of {self.pes} PEs", "change pseudo_channels or cube.pes"
        path, related = "hbm.pseudo_channels", ("pes",)
        if channels % self.pes:
            expected = "as many for each PE: a multiple of cube.pes"
            yield BrokenRule(path, f"{channels} with {self.pes} PEs", expected, fix, related)
        elif not is_power_of_two(each):
            yield BrokenRule(path, found, "a power of two for each PE", fix, related)
        if self.hbm.impl is None and each > MAX_CHANNELS:
            expected, fix = f"at most {MAX_CHANNELS} for each PE", "lower pseudo_channels"
            yield BrokenRule(path, found, expected, fix, related)
        yield from self._layout_rules()

    def _layout_rules(self) -> Iterator[BrokenRule]:
        match self.noc:
            case MeshSpec():
                routers, sides = self.noc.pe_routers, ["rows", "columns"]
                expected = f"at most {routers}: one for each router beside the hole"
            case RingSpec():
                routers, sides = self.noc.routers, ["routers"]
                expected = f"at most {routers}: one for each router"
            case CrossbarSpec():
                return
            case _:
                assert_never(self.noc)
        if self.pes > routers:
            fix = "enlarge cube.noc or use fewer PEs: this layout is impossible"
            related = ("noc", *(f"noc.{side}" for side in sides))
            yield BrokenRule("pes", f"{self.pes} PEs", expected, fix, related)


class MachineSpec(Spec):
    """One machine. Every field has its unit in its name, its bounds and its only default."""

    name: Name = Field("ahbm", description="what tables and records call it")
    description: Description = Field("", description="one line for people")
    routing: Literal["xy"] = Field("xy", description="turn rule of every mesh")
    packet_bytes: PacketSize = Field(1_024, description="unit of arbitration")
    flit_bytes: PacketSize = Field(64, description="unit of the wire")
    ps_per_mm: Annotated[int, Field(ge=0, le=10**6)] = Field(
        10, description="wire delay; 0: wires take no time"
    )
    host: HostSpec = HostSpec()
    fabric: FabricSpec = FabricSpec()
    sip: SipSpec = SipSpec()
    cube: CubeSpec = CubeSpec()
    pe: PeSpec = PeSpec()
    address: AddressSpec = AddressSpec()

    def broken_rules(self) -> Iterator[BrokenRule]:
        yield from self._packet_rules()
        yield from self._queue_rules()
        yield from self._joint_rules()
        yield from self._address_rules()
        yield from self._size_rules()
        yield from self._room_rules()

    def _packet_rules(self) -> Iterator[BrokenRule]:
        if self.packet_bytes % self.flit_bytes:
            found = f"{self.packet_bytes} with flit_bytes {self.flit_bytes}"
            expected = "whole flits: a multiple of flit_bytes"
            yield BrokenRule("packet_bytes", found, expected, "round it", ("flit_bytes",))
        for path, section in walk_sections(self):
            for name in ("buffer_bytes", "in_flight_bytes"):
                room_bytes = getattr(section, name, None)
                if room_bytes is not None and room_bytes < self.packet_bytes:
                    found = f"{room_bytes} with packet_bytes {self.packet_bytes}"
                    expected = "room for at least one packet"
                    fix = f"raise {name} or lower packet_bytes"
                    yield BrokenRule(f"{path}.{name}", found, expected, fix, ("packet_bytes",))
            window_bytes = getattr(section, "in_flight_bytes", 0)
            num_packets = window_bytes // self.packet_bytes
            if num_packets > MAX_PACKETS:
                found = f"{window_bytes} bytes: {num_packets} packets"
                path, expected = (
                    f"{path}.in_flight_bytes",
                    f"at most {MAX_PACKETS} packets under way",
                )
                yield BrokenRule(path, found, expected, "lower it", ("packet_bytes",))

    def _queue_rules(self) -> Iterator[BrokenRule]:
        hbm = self.cube.hbm
        if hbm.interleave_bytes > self.packet_bytes:
            found = f"{hbm.interleave_bytes} with packet_bytes {self.packet_bytes}"
            path, fix = "cube.hbm.interleave_bytes", "lower interleave_bytes"
            yield BrokenRule(path, found, "at most one packet", fix, ("packet_bytes",))
        if not hbm.is_banked:
            return
        bursts = self.bursts_per_channel()
        for name in ("read_queue_bursts", "write_queue_bursts"):
            if getattr(hbm, name) < bursts:
                found = f"{getattr(hbm, name)}, but a packet can bring {bursts} to one channel"
                related = ("packet_bytes", "cube.pes", "cube.hbm.pseudo_channels")
                fix = f"raise {name} or lower packet_bytes"
                yield BrokenRule(f"cube.hbm.{name}", found, f"at least {bursts}", fix, related)

    def bursts_per_channel(self) -> int:
        """Return the most bursts that one packet brings to one pseudo-channel."""
        return max_channel_bursts(
            packet_bytes=self.packet_bytes,
            interleave_bytes=self.cube.hbm.interleave_bytes,
            burst_bytes=self.cube.hbm.burst_bytes,
            num_channels=self.cube.pseudo_channels_per_slice,
        )

    def _joint_rules(self) -> Iterator[BrokenRule]:
        if self.sip.num_cubes > 1 and self.cube.ucie is None:
            found = f"no die-to-die ports with {self.sip.num_cubes} cubes a SIP"
            fix = "remove `ucie: null`, or set sip.columns and sip.rows to 1"
            related = ("sip.columns", "sip.rows")
            yield BrokenRule("cube.ucie", found, "ports that join the cubes", fix, related)
        if self.sip.io is not None and self.cube.ucie is None and self.sip.num_cubes == 1:
            found = "no die-to-die ports with an IO chiplet"
            fix = "remove `ucie: null`, or set sip.io to null"
            yield BrokenRule("cube.ucie", found, "a port that joins the two", fix, ("sip.io",))
        columns = self.fabric.columns
        if columns is not None and self.sip.count % columns:
            found = f"{columns} with {self.sip.count} SIPs"
            fix = "change fabric.columns or sip.count"
            expected = "whole rows: a divisor of sip.count"
            yield BrokenRule("fabric.columns", found, expected, fix, ("sip.count",))

    def _address_rules(self) -> Iterator[BrokenRule]:
        fields = self.address
        if self.sip.count > 2**fields.sip_bits:
            found = f"{self.sip.count} SIPs with {fields.sip_bits} address bits for them"
            expected = f"at most {2**fields.sip_bits}"
            fix = "raise address.sip_bits"
            yield BrokenRule("sip.count", found, expected, fix, ("address.sip_bits",))
        most_cubes = 1 << (fields.die_bits - 1)
        if self.sip.num_cubes > most_cubes:
            found = f"{self.sip.num_cubes} cubes with {fields.die_bits} address bits for dies"
            expected = f"at most {most_cubes}: the other half are IO chiplets"
            related = ("sip.columns", "address.die_bits")
            yield BrokenRule("sip.rows", found, expected, "raise address.die_bits", related)
        window_bytes = min(COMPUTE_WINDOW_BYTES, 1 << fields.offset_bits) // 2  # from 0
        if self.cube.hbm.capacity_bytes > window_bytes:
            found = f"{self.cube.hbm.capacity_bytes} bytes"
            expected = f"at most {window_bytes}: the HBM window of a die's addresses"
            path, fix = "cube.hbm.capacity_bytes", "lower the capacity"
            yield BrokenRule(path, found, expected, fix, ("address.offset_bits",))

    def _size_rules(self) -> Iterator[BrokenRule]:
        noc = self.cube.noc
        routers = noc.rows * noc.columns if isinstance(noc, MeshSpec) else self.cube.pes
        connections = 0 if self.cube.ucie is None else 4 * self.cube.ucie.connections
        routers = noc.routers if isinstance(noc, RingSpec) else routers
        per_cube = routers + connections + 4 * self.cube.pes
        nodes = self.sip.count * (self.sip.num_cubes * per_cube + self.fabric.links)
        if nodes > MAX_NODES:
            counts = ("sip.columns", "sip.rows", "cube.pes", "cube.noc", "cube.ucie.connections")
            found, expected = f"a machine of about {nodes} nodes", f"at most {MAX_NODES}"
            yield BrokenRule("sip.count", found, expected, "make something smaller", counts)

    def _room_rules(self) -> Iterator[BrokenRule]:
        """Every ready program runs at its smallest size: there is room for tiles and tensors."""
        tcm, page_bytes = self.pe.tcm, self.pe.mmu.page_bytes
        for path, found_bytes, least_bytes in (
            ("pe.registers.capacity_bytes", self.pe.registers.capacity_bytes, MIN_REGISTER_BYTES),
            ("pe.mmu.page_bytes", page_bytes, MIN_PAGE_BYTES),
        ):
            if found_bytes < least_bytes:
                yield BrokenRule(path, str(found_bytes), f"at least {least_bytes}", "raise it")
        tile_bytes = tcm.capacity_bytes - tcm.reserved_bytes
        if tile_bytes < MIN_TILE_BYTES:
            found = f"{tcm.capacity_bytes} with reserved_bytes {tcm.reserved_bytes}"
            expected = f"at least {MIN_TILE_BYTES} beside them, for tiles of programs"
            path, fix = "pe.tcm.capacity_bytes", "raise it or reserve less"
            yield BrokenRule(path, found, expected, fix, ("pe.tcm.reserved_bytes",))
        ring_bytes = max(MIN_RESERVED_BYTES, MIN_RING_BYTES * self.sip.count)
        if tcm.reserved_bytes < ring_bytes:
            found = f"{tcm.reserved_bytes} with {self.sip.count} SIPs"
            expected = f"at least {ring_bytes}, for messages between PEs"
            fix = "raise reserved_bytes"
            yield BrokenRule("pe.tcm.reserved_bytes", found, expected, fix, ("sip.count",))
        slice_bytes = self.cube.hbm.capacity_bytes // self.cube.pes
        least_bytes = max(MIN_SLICE_BYTES, MIN_SLICE_PAGES * page_bytes)
        if slice_bytes < least_bytes:
            found = f"{slice_bytes} bytes for each of {self.cube.pes} PEs, in pages of {page_bytes}"
            expected = f"at least {least_bytes} for each PE: {MIN_SLICE_PAGES} pages, and 1 MiB"
            fix = "raise capacity_bytes, or lower pe.mmu.page_bytes or cube.pes"
            related = ("pe.mmu.page_bytes", "cube.pes")
            yield BrokenRule("cube.hbm.capacity_bytes", found, expected, fix, related)
