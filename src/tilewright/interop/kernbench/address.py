"""Addresses by hand: ``kernbench.policy.address``, ``phyaddr`` and ``pe_mmu``.

A physical address has 51 bits: SIP, die, offset inside the die. The windows of a die are those of
``machine.address``, so an address of this module is the machine's address of the same byte, as long
as the machine has the default widths. The page tables of a machine's PEs change by messages
(`MmuMapMsg`, `MmuUnmapMsg`); a table here is a value that no machine knows of.
"""

from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from typing import Self

from tilewright.errors import SpecError
from tilewright.machine.address import AddressLayout, SubUnit
from tilewright.machine.spec.machine import AddressSpec
from tilewright.memory.address import PhysicalByte, RangeMapping, VirtualByte, VirtualRange
from tilewright.memory.page_table import PageTable

_WIDTHS = AddressSpec()
_LAYOUT = AddressLayout(
    _WIDTHS.sip_bits,
    _WIDTHS.die_bits,
    _WIDTHS.offset_bits,
    num_sips=1 << _WIDTHS.sip_bits,
    num_cubes=1 << (_WIDTHS.die_bits - 1),
    num_io=1,
    num_pes=1,
    slice_bytes=0,
    tcm_bytes=0,
    sram_bytes=0,
)
_HBM_WINDOW_BYTES = _LAYOUT.base_of(SubUnit.TCM)  # HBM is the first window of a die
_SRAM_WINDOW_BYTES = _LAYOUT.base_of(SubUnit.M_CPU) - _LAYOUT.base_of(SubUnit.SRAM)


@dataclass(frozen=True, slots=True, order=True)
class PhysAddr:
    """A byte of the machine's memories: which SIP, which die, which byte of the die.

    >>> address = PhysAddr.pe_hbm_addr(1, 3, 5, 256, 6 << 30)
    >>> hex(address.encode()), PhysAddr.decode(address.encode()) == address
    ('0x8c0780000100', True)
    """

    sip_id: int
    die_id: int
    local_offset: int

    def __post_init__(self) -> None:
        _check("sip_id", self.sip_id, _LAYOUT.num_sips)
        _check("die_id", self.die_id, _LAYOUT.first_io_die + _LAYOUT.num_io_dies)
        is_cube = self.die_id < _LAYOUT.first_io_die
        window = _LAYOUT.cube_window_bytes if is_cube else _LAYOUT.io_window_bytes
        _check("local_offset", self.local_offset, window)

    def __str__(self) -> str:
        return f"physical {self.encode():#x}"

    def encode(self) -> int:
        """Return the address as an integer of 51 bits."""
        high = self.sip_id << _LAYOUT.die_bits | self.die_id
        return high << _LAYOUT.offset_bits | self.local_offset

    @classmethod
    def decode(cls, value: int) -> Self:
        """Return the address that an integer encodes; refuse reserved dies and offsets."""
        _check("encoded address", value, 1 << _LAYOUT.num_bits)
        high, offset = divmod(value, _LAYOUT.die_bytes)
        sip, die = divmod(high, 1 << _LAYOUT.die_bits)
        try:
            return cls(sip, die, offset)
        except SpecError as error:
            found = f"{value:#x} = SIP {sip}, die {die}, offset {offset:#x}"
            raise SpecError(
                "PhysAddr", found, f"{error.expected} ({error.where})", error.fix
            ) from None

    @classmethod
    def pe_hbm_addr(cls, *args: int, **kwargs: int) -> Self:
        """Return a byte of the HBM slice that a PE owns.

        ``(sip_id, cube_id, pe_id, pe_local_hbm_offset, slice_size_bytes)``; older programs give
        ``rack_id``, which is 0, before them.
        """
        sip, cube, pe, offset, slice_bytes = _bound("pe_hbm_addr", _PE_HBM, args, kwargs)
        _check("slice_size_bytes", slice_bytes, _HBM_WINDOW_BYTES + 1, low=1)
        _check("pe_local_hbm_offset", offset, slice_bytes)
        _check("pe_id", pe, _HBM_WINDOW_BYTES // slice_bytes)
        _check("cube_id", cube, _LAYOUT.num_cubes)
        return cls(sip, cube, pe * slice_bytes + offset)

    @classmethod
    def pe_tcm_addr(
        cls, sip_id: int, cube_id: int, pe_id: int, tcm_offset: int, pes_per_cube: int
    ) -> Self:
        """Return a byte of a PE's TCM, whose window depends on how many PEs a cube has."""
        _check("pes_per_cube", pes_per_cube, _LAYOUT.slot_bytes, low=1)
        layout = replace(_LAYOUT, num_pes=pes_per_cube)
        _check("pe_id", pe_id, pes_per_cube)
        _check("tcm_offset", tcm_offset, layout.slot_bytes // 2)
        _check("cube_id", cube_id, _LAYOUT.num_cubes)
        return cls(sip_id, cube_id, layout.base_of(SubUnit.TCM, pe_id) + tcm_offset)

    @classmethod
    def cube_sram_addr(cls, *args: int, **kwargs: int) -> Self:
        """Return a byte of a cube's SRAM.

        ``(sip_id, cube_id, sram_offset)``; older programs give ``rack_id``, which is 0, before.
        """
        sip, cube, offset = _bound("cube_sram_addr", _CUBE_SRAM, args, kwargs)
        _check("sram_offset", offset, _SRAM_WINDOW_BYTES)
        _check("cube_id", cube, _LAYOUT.num_cubes)
        return cls(sip, cube, _LAYOUT.base_of(SubUnit.SRAM) + offset)


def _signature(*names: str) -> Signature:
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])


_PE_HBM = _signature("sip_id", "cube_id", "pe_id", "pe_local_hbm_offset", "slice_size_bytes")
_CUBE_SRAM = _signature("sip_id", "cube_id", "sram_offset")


def _bound(
    name: str, signature: Signature, args: tuple[int, ...], kwargs: dict[str, int]
) -> tuple[int, ...]:
    """Return the arguments in the order of the signature; a rack in front of them must be 0."""
    if "rack_id" in kwargs:
        rack, kwargs = kwargs["rack_id"], {k: v for k, v in kwargs.items() if k != "rack_id"}
        _check("rack_id", rack, 1)
    elif len(args) + len(kwargs) > len(signature.parameters) and args:
        _check("rack_id", args[0], 1)
        args = args[1:]
    try:
        return signature.bind(*args, **kwargs).args
    except TypeError as error:
        expected = f"{name}{signature}, or rack_id=0 before them"
        raise SpecError(f"PhysAddr.{name}", str(error), expected, "correct the call") from None


def _check(field: str, value: object, limit: int, *, low: int = 0) -> None:
    if type(value) is not int or not low <= value < limit:
        expected = f"an int in {low}..{_text(limit - 1)}"
        raise SpecError(f"PhysAddr {field}", _text(value), expected, "correct the field")


def _text(value: object) -> str:
    """Return a field's value as people read it: counts in digits, addresses in hexadecimal."""
    return f"{value:#x}" if type(value) is int and value >= 2**12 else repr(value)


PAGE_BYTES = 4096  # where a topology has no pe_mmu.attrs.page_size


class PeMmu:
    """A page table of byte ranges. A miss is a PageFaultError, never a physical address.

    >>> mmu = PeMmu()
    >>> mmu.map(0x1_0000_0000, 0x2000, 100)
    >>> hex(mmu.translate(0x1_0000_0010))
    '0x2010'
    """

    def __init__(self, page_size: int = PAGE_BYTES, name: str = "PeMmu") -> None:
        self.page_size = page_size
        self._table = PageTable(name, page_size)

    def map(self, va: int, pa: int, size: int) -> None:
        """Add a range; a byte that is mapped already is a RegistryError."""
        virtual = VirtualRange(VirtualByte(va), size)
        self._table.map([RangeMapping(virtual, PhysicalByte(pa))])

    def unmap(self, va: int, size: int) -> None:
        """Take a range out as it was mapped; anything else is a RegistryError."""
        self._table.unmap([VirtualRange(VirtualByte(va), size)])

    def translate(self, va: int) -> int:
        """Return the physical address of a virtual byte, and let no simulated time pass."""
        ((physical, _),) = self._table.runs(VirtualByte(va), 1)
        return physical
