"""Physical addresses, and the layout of the space that they name.

A physical address has three fields: SIP, die and offset inside the die. The lower half of the die
numbers are cubes, the next five are IO chiplets, the rest is reserved. With the default widths
(4 + 5 + 42 bits) cubes are dies 0-15, IO chiplets 16-20.

A cube uses the low 256 GiB of its offsets, called W here (less if a die has fewer offset bits):

| from | size | window | sub-units |
| --- | --- | --- | --- |
| 0 | W/2 | HBM | one slice per PE, equal and adjacent |
| W/2 | W/4 | PE-local | one slot per PE; TCM in its lower half, PE_CPU in its upper half |
| 3W/4 | W/8 | SRAM | one |
| 7W/8 | W/8 | M_CPU-local | one |

PE slots are equal powers of two. An IO chiplet uses the low 1 TiB; its IO_CPU starts at 0. A
processor's local memory is 16 MiB. What a window has beyond its sub-units is reserved: no address
there decodes.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from tilewright.errors import SpecError
from tilewright.machine.coords import CubeCoord, PeCoord, SipCoord
from tilewright.machine.spec import MachineSpec

MAX_CUBE_WINDOW_BYTES = 2**38
MAX_IO_WINDOW_BYTES = 2**40
MAX_IO_DIES = 5
PROCESSOR_BYTES = 2**24


class SubUnit(Enum):
    """What an address can name on a die."""

    HBM = "hbm"
    TCM = "tcm"
    PE_CPU = "pe_cpu"
    SRAM = "sram"
    M_CPU = "m_cpu"
    IO_CPU = "io_cpu"


@dataclass(frozen=True, slots=True, order=True)
class PhysicalAddress:
    """A byte of the machine's memories. Meaning comes from ``AddressLayout``."""

    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int or self.value < 0:
            fix = "pass a whole number of bytes"
            raise SpecError("physical address", repr(self.value), "an int of at least 0", fix)

    def __str__(self) -> str:
        return f"physical {self.value:#x}"


@dataclass(frozen=True, slots=True)
class Location:
    """What a physical address means: a sub-unit, where it is, and the byte inside it.

    ``where`` is a PE for HBM slices, TCM and PE_CPU, a cube for SRAM and M_CPU, a SIP for IO_CPU.
    """

    unit: SubUnit
    where: SipCoord | CubeCoord | PeCoord
    offset: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Where a sub-unit is on its die; one of each PE if ``where`` is a PE."""

    where: type[SipCoord | CubeCoord | PeCoord]
    start: int
    size: int
    stride: int = 0  # from one PE's to the next


@dataclass(frozen=True)
class AddressLayout:
    """Windows of one machine; encodes locations and decodes addresses, and refuses the rest."""

    sip_bits: int
    die_bits: int
    offset_bits: int
    num_sips: int
    num_cubes: int  # of a SIP
    num_io: int  # of a SIP
    num_pes: int  # of a cube
    slice_bytes: int
    tcm_bytes: int
    sram_bytes: int

    @property
    def num_bits(self) -> int:
        return self.sip_bits + self.die_bits + self.offset_bits

    @property
    def die_bytes(self) -> int:
        """Addresses of one die, whatever lies there."""
        return 1 << self.offset_bits

    @property
    def first_io_die(self) -> int:
        return 1 << (self.die_bits - 1)

    @property
    def num_io_dies(self) -> int:
        """Die numbers that belong to IO chiplets, used or not."""
        return min(MAX_IO_DIES, self.first_io_die)

    @property
    def cube_window_bytes(self) -> int:
        return min(MAX_CUBE_WINDOW_BYTES, self.die_bytes)

    @property
    def io_window_bytes(self) -> int:
        return min(MAX_IO_WINDOW_BYTES, self.die_bytes)

    @property
    def slot_bytes(self) -> int:
        """Window of one PE."""
        return self.cube_window_bytes // 4 // (1 << (self.num_pes - 1).bit_length())

    @cached_property
    def _windows(self) -> dict[SubUnit, _Window]:
        whole, slot = self.cube_window_bytes, self.slot_bytes
        slots = whole // 2
        return {
            SubUnit.HBM: _Window(PeCoord, 0, self.slice_bytes, self.slice_bytes),
            SubUnit.TCM: _Window(PeCoord, slots, self.tcm_bytes, slot),
            SubUnit.PE_CPU: _Window(PeCoord, slots + slot // 2, PROCESSOR_BYTES, slot),
            SubUnit.SRAM: _Window(CubeCoord, whole // 4 * 3, self.sram_bytes),
            SubUnit.M_CPU: _Window(CubeCoord, whole // 8 * 7, PROCESSOR_BYTES),
            SubUnit.IO_CPU: _Window(SipCoord, 0, PROCESSOR_BYTES),
        }

    def size_of(self, unit: SubUnit) -> int:
        """Return the bytes of a sub-unit that exist."""
        return self._windows[unit].size

    def base_of(self, unit: SubUnit, pe: int = 0) -> int:
        """Return the offset inside the die at which a sub-unit starts."""
        window = self._windows[unit]
        return window.start + pe * window.stride

    def hbm(self, coord: PeCoord, offset: int) -> PhysicalAddress:
        """Return the address of a byte of the slice that a PE owns."""
        return self.encode(Location(SubUnit.HBM, coord, offset))

    def tcm(self, coord: PeCoord, offset: int) -> PhysicalAddress:
        return self.encode(Location(SubUnit.TCM, coord, offset))

    def sram(self, coord: CubeCoord, offset: int) -> PhysicalAddress:
        return self.encode(Location(SubUnit.SRAM, coord, offset))

    def encode(self, location: Location) -> PhysicalAddress:
        """Return the address of a location; refuse one that does not exist."""
        where, unit = location.where, location.unit
        kind = self._windows[unit].where
        if type(where) is not kind:
            found = f"{unit.value} of {where}"
            raise SpecError("physical address", found, f"a {kind.__name__}", "name its place")
        pe = where.pe if isinstance(where, PeCoord) else 0
        if isinstance(where, SipCoord):
            die, num_dies = self.first_io_die, self.first_io_die + self.num_io
        else:
            die, num_dies = where.cube, self.num_cubes
        if not (0 <= where.sip < self.num_sips and 0 <= pe < self.num_pes and 0 <= die < num_dies):
            expected = f"{self.num_sips} SIPs x {self.num_cubes} cubes x {self.num_pes} PEs"
            raise SpecError("physical address", str(where), expected, "name a place that exists")
        size = self.size_of(unit)
        if type(location.offset) is not int or not 0 <= location.offset < size:
            found = f"offset {location.offset!r} in {unit.value} of {where}"
            raise SpecError("physical address", found, f"0..{size - 1}", "stay inside the sub-unit")
        high = where.sip << self.die_bits | die
        return PhysicalAddress(high << self.offset_bits | self.base_of(unit, pe) + location.offset)

    def decode(self, address: PhysicalAddress, *, requester: str = "unknown") -> Location:
        """Return what an address means; refuse a reserved one with its fields and the requester."""
        high, offset = divmod(address.value, self.die_bytes)
        sip, die = divmod(high, 1 << self.die_bits)
        location: Location | None = None
        if sip < self.num_sips:
            if die < self.num_cubes:
                location = self._decode_cube(CubeCoord(sip, die), offset)
            elif die - self.first_io_die in range(self.num_io) and offset < PROCESSOR_BYTES:
                location = Location(SubUnit.IO_CPU, SipCoord(sip), offset)
        if location is None:
            found = f"{address} = SIP {sip}, die {die}, offset {offset:#x}, asked by {requester}"
            fix = "check the address that was mapped"
            raise SpecError("physical address", found, self._expected(die), fix)
        return location

    def _decode_cube(self, cube: CubeCoord, offset: int) -> Location | None:
        for unit, window in self._windows.items():
            pe, inside = divmod(offset - window.start, window.stride or self.die_bytes)
            if window.where is PeCoord and 0 <= pe < self.num_pes and inside < window.size:
                return Location(unit, PeCoord(cube.sip, cube.cube, pe), inside)
            if window.where is CubeCoord and pe == 0 and inside < window.size:
                return Location(unit, cube, inside)
        return None

    def _expected(self, die: int) -> str:
        if self.first_io_die <= die < self.first_io_die + self.num_io_dies:
            return f"a byte of an IO_CPU in the {self.io_window_bytes:#x} bytes of an IO die"
        if die >= self.num_cubes:
            text = f"a die in 0..{self.num_cubes - 1}"
            return f"{text} or {self.first_io_die}" if self.num_io else text
        return "a byte of HBM, TCM, PE_CPU, SRAM or M_CPU"


def build_address_layout(spec: MachineSpec) -> AddressLayout:
    """Return the layout of a machine; refuse a local memory larger than its window."""
    address, cube = spec.address, spec.cube
    layout = AddressLayout(
        sip_bits=address.sip_bits,
        die_bits=address.die_bits,
        offset_bits=address.offset_bits,
        num_sips=spec.sip.count,
        num_cubes=spec.sip.columns * spec.sip.rows,
        num_io=0 if spec.sip.io is None else 1,
        num_pes=cube.pes,
        slice_bytes=cube.hbm.capacity_bytes // cube.pes,
        tcm_bytes=spec.pe.tcm.capacity_bytes,
        sram_bytes=cube.sram.capacity_bytes,
    )
    for field, found, limit in (
        ("pe.tcm.capacity_bytes", layout.tcm_bytes, layout.slot_bytes // 2),
        ("cube.sram.capacity_bytes", layout.sram_bytes, layout.cube_window_bytes // 8),
        ("local memory of a processor", PROCESSOR_BYTES, layout.slot_bytes // 2),
    ):
        if found > limit:
            fix = "reduce it, or widen the field in address"
            raise SpecError(field, str(found), f"at most {limit}, its window", fix)
    return layout
