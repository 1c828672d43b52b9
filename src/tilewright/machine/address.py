"""Physical and virtual addresses: two types that never mix, and the layout of the physical space.

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
        _check_value("physical address", self.value)

    def __str__(self) -> str:
        return f"physical {self.value:#x}"


@dataclass(frozen=True, slots=True, order=True)
class VirtualAddress:
    """A byte of a program's address space; it has no place before it is translated."""

    value: int

    def __post_init__(self) -> None:
        _check_value("virtual address", self.value)

    def __str__(self) -> str:
        return f"virtual {self.value:#x}"


@dataclass(frozen=True, slots=True)
class Location:
    """What a physical address means: a sub-unit, where it is, and the byte inside it.

    ``where`` is a PE for HBM slices, TCM and PE_CPU, a cube for SRAM and M_CPU, a SIP for IO_CPU.
    """

    unit: SubUnit
    where: SipCoord | CubeCoord | PeCoord
    offset: int


@dataclass(frozen=True, slots=True)
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
        return min(MAX_CUBE_WINDOW_BYTES, 1 << self.offset_bits)

    @property
    def io_window_bytes(self) -> int:
        return min(MAX_IO_WINDOW_BYTES, 1 << self.offset_bits)

    @property
    def slot_bytes(self) -> int:
        """Window of one PE."""
        return self.cube_window_bytes // 4 // (1 << (self.num_pes - 1).bit_length())

    def size_of(self, unit: SubUnit) -> int:
        """Bytes of a sub-unit that exist."""
        sizes = {
            SubUnit.HBM: self.slice_bytes,
            SubUnit.TCM: self.tcm_bytes,
            SubUnit.SRAM: self.sram_bytes,
        }
        return sizes.get(unit, PROCESSOR_BYTES)

    def base_of(self, unit: SubUnit, pe: int = 0) -> int:
        """Offset inside the die at which a sub-unit starts."""
        window, slot = self.cube_window_bytes, self.slot_bytes
        bases = {
            SubUnit.HBM: pe * self.slice_bytes,
            SubUnit.TCM: window // 2 + pe * slot,
            SubUnit.PE_CPU: window // 2 + pe * slot + slot // 2,
            SubUnit.SRAM: window // 4 * 3,
            SubUnit.M_CPU: window // 8 * 7,
            SubUnit.IO_CPU: 0,
        }
        return bases[unit]

    def hbm(self, coord: PeCoord, offset: int) -> PhysicalAddress:
        """A byte of the slice that a PE owns."""
        return self.encode(Location(SubUnit.HBM, coord, offset))

    def cube_hbm(self, coord: CubeCoord, offset: int) -> PhysicalAddress:
        """A byte of a cube's HBM; slices lie one behind the other."""
        pe, inside = divmod(offset, self.slice_bytes)
        return self.hbm(PeCoord(coord.sip, coord.cube, pe), inside)

    def tcm(self, coord: PeCoord, offset: int) -> PhysicalAddress:
        return self.encode(Location(SubUnit.TCM, coord, offset))

    def sram(self, coord: CubeCoord, offset: int) -> PhysicalAddress:
        return self.encode(Location(SubUnit.SRAM, coord, offset))

    def encode(self, location: Location) -> PhysicalAddress:
        """The address of a location; one that does not exist is refused."""
        where, unit = location.where, location.unit
        die, pe = self._die_and_pe(location)
        size = self.size_of(unit)
        if type(location.offset) is not int or not 0 <= location.offset < size:
            found = f"offset {location.offset!r} in {unit.value} of {where}"
            raise SpecError("physical address", found, f"0..{size - 1}", "stay inside the sub-unit")
        high = where.sip << self.die_bits | die
        return PhysicalAddress(high << self.offset_bits | self.base_of(unit, pe) + location.offset)

    def _die_and_pe(self, location: Location) -> tuple[int, int]:
        where = location.where
        kinds = _WHERE[location.unit]
        if type(where) is not kinds:
            found = f"{location.unit.value} of {where}"
            raise SpecError("physical address", found, f"a {kinds.__name__}", "name its place")
        die = self.first_io_die if isinstance(where, SipCoord) else where.cube
        pe = where.pe if isinstance(where, PeCoord) else 0
        num_io = self.num_io if isinstance(where, SipCoord) else 1
        exists = 0 <= where.sip < self.num_sips and 0 <= pe < self.num_pes and num_io
        if not exists or (not isinstance(where, SipCoord) and not 0 <= die < self.num_cubes):
            expected = f"{self.num_sips} SIPs x {self.num_cubes} cubes x {self.num_pes} PEs"
            raise SpecError("physical address", str(where), expected, "name a place that exists")
        return die, pe

    def decode(self, address: PhysicalAddress, *, requester: str = "unknown") -> Location:
        """What an address means; a reserved one is refused with its fields and the requester."""
        high, offset = divmod(address.value, 1 << self.offset_bits)
        sip, die = divmod(high, 1 << self.die_bits)
        location: Location | None = None
        if sip < self.num_sips:
            if die < self.num_cubes:
                location = self._decode_cube(CubeCoord(sip, die), offset)
            elif self.first_io_die <= die < self.first_io_die + self.num_io:
                location = _inside(SubUnit.IO_CPU, SipCoord(sip), offset, PROCESSOR_BYTES)
        if location is None:
            found = f"{address} = SIP {sip}, die {die}, offset {offset:#x}, asked by {requester}"
            fix = "check the address that was mapped"
            raise SpecError("physical address", found, self._expected(die), fix)
        return location

    def _decode_cube(self, cube: CubeCoord, offset: int) -> Location | None:
        window, slot = self.cube_window_bytes, self.slot_bytes
        if offset < window // 2:
            pe, inside = divmod(offset, self.slice_bytes)
            unit = SubUnit.HBM
        elif offset < window // 4 * 3:
            pe, inside = divmod(offset - window // 2, slot)
            unit = SubUnit.TCM if inside < slot // 2 else SubUnit.PE_CPU
            inside %= slot // 2
        else:
            unit = SubUnit.SRAM if offset < window // 8 * 7 else SubUnit.M_CPU
            return _inside(unit, cube, offset - self.base_of(unit), self.size_of(unit))
        if pe >= self.num_pes:
            return None
        return _inside(unit, PeCoord(cube.sip, cube.cube, pe), inside, self.size_of(unit))

    def _expected(self, die: int) -> str:
        if self.first_io_die <= die < self.first_io_die + self.num_io_dies:
            return f"a byte of an IO_CPU in the {self.io_window_bytes:#x} bytes of an IO die"
        if die >= self.num_cubes:
            text = f"a die in 0..{self.num_cubes - 1}"
            return f"{text} or {self.first_io_die}" if self.num_io else text
        return "a byte of HBM, TCM, PE_CPU, SRAM or M_CPU"


_WHERE: dict[SubUnit, type[SipCoord | CubeCoord | PeCoord]] = {
    SubUnit.HBM: PeCoord,
    SubUnit.TCM: PeCoord,
    SubUnit.PE_CPU: PeCoord,
    SubUnit.SRAM: CubeCoord,
    SubUnit.M_CPU: CubeCoord,
    SubUnit.IO_CPU: SipCoord,
}


def build_address_layout(spec: MachineSpec) -> AddressLayout:
    """The layout of a machine; a local memory larger than its window is refused."""
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


def _inside(
    unit: SubUnit, where: SipCoord | CubeCoord | PeCoord, offset: int, size: int
) -> Location | None:
    return Location(unit, where, offset) if offset < size else None


def _check_value(what: str, value: object) -> None:
    if type(value) is not int or value < 0:
        fix = "pass a whole number of bytes"
        raise SpecError(what, repr(value), "an int of at least 0", fix)
