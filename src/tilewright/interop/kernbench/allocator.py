"""Memory by hand: ``kernbench.policy.address`` allocators of physical and virtual bytes.

A program that allocates by hand has its own books: an engine does not know of them, and tensors
of its contexts may get the same bytes.
"""

from dataclasses import dataclass, fields

from tilewright.errors import AllocationError, SpecError
from tilewright.interop.kernbench.address import PhysAddr
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.allocator import Allocator, AllocatorStatistics


def _check_least(owner: str, name: str, value: object, low: int, fix: str) -> None:
    if type(value) is not int or value < low:
        raise SpecError(f"{owner} {name}", repr(value), f"an int of at least {low}", fix)


def _wrong_slices(found: str, expected: str) -> SpecError:
    return SpecError("AddressConfig hbm_slices_per_cube", found, expected, "correct the field")


@dataclass(frozen=True, slots=True)
class AddressConfig:
    """Counts and sizes of the memories that allocators give out."""

    sip_count: int
    cubes_per_sip: int
    pes_per_cube: int
    hbm_bytes_per_cube: int
    hbm_slices_per_cube: int
    tcm_bytes_per_pe: int
    tcm_scheduler_reserved_bytes: int
    sram_bytes_per_cube: int

    def __post_init__(self) -> None:
        for field in fields(self):
            low = 0 if field.name.endswith("bytes") or field.name.startswith("sram") else 1
            _check_least(
                "AddressConfig", field.name, getattr(self, field.name), low, "correct the field"
            )
        hbm, slices, pes = self.hbm_bytes_per_cube, self.hbm_slices_per_cube, self.pes_per_cube
        if hbm % slices:
            raise _wrong_slices(f"{hbm} bytes in {slices} slices", "slices of whole bytes")
        if slices < pes:
            raise _wrong_slices(f"{slices} slices for {pes} PEs", "a slice for each PE")
        if self.tcm_scheduler_reserved_bytes > self.tcm_bytes_per_pe:
            where = "AddressConfig tcm_scheduler_reserved_bytes"
            found = f"{self.tcm_scheduler_reserved_bytes} of {self.tcm_bytes_per_pe} bytes"
            raise SpecError(where, found, "at most the whole TCM", "correct the field")

    @property
    def hbm_slice_bytes(self) -> int:
        """The HBM that one PE owns."""
        return self.hbm_bytes_per_cube // self.hbm_slices_per_cube


class PEMemAllocator:
    """Gives out the HBM slice and the TCM of one PE: the first hole that fits, every free checked.

    The TCM begins behind what is reserved for the scheduler.

    >>> config = AddressConfig(2, 16, 8, 48 << 30, 8, 16 << 20, 4 << 20, 32 << 20)
    >>> allocator = PEMemAllocator(0, sip_id=1, cube_id=3, pe_id=5, cfg=config)
    >>> address = allocator.alloc_hbm(4096)
    >>> address == PhysAddr.pe_hbm_addr(1, 3, 5, 0, 6 << 30)
    True
    >>> allocator.free_hbm(address, 4096)
    """

    def __init__(
        self, rack_id: int, sip_id: int, cube_id: int, pe_id: int, cfg: AddressConfig
    ) -> None:
        self.rack_id, self.sip_id, self.cube_id, self.pe_id = rack_id, sip_id, cube_id, pe_id
        self.cfg = cfg
        limits = {"rack_id": 1, "cube_id": cfg.cubes_per_sip, "pe_id": cfg.pes_per_cube}
        for name, limit in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < limit:
                expected = f"an int in 0..{limit - 1}"
                raise SpecError(f"PEMemAllocator {name}", repr(value), expected, "correct it")
        place = sip_id, cube_id, pe_id
        hbm = PhysAddr.pe_hbm_addr(*place, 0, cfg.hbm_slice_bytes)
        tcm = PhysAddr.pe_tcm_addr(*place, 0, cfg.pes_per_cube)
        self._pe = place_name(PeCoord(*place))
        reserved = cfg.tcm_scheduler_reserved_bytes
        self._hbm = _Memory(f"{self._pe}.hbm", hbm.encode(), cfg.hbm_slice_bytes)
        self._tcm = _Memory(
            f"{self._pe}.tcm", tcm.encode() + reserved, cfg.tcm_bytes_per_pe - reserved
        )

    def __repr__(self) -> str:
        return f"<PEMemAllocator of {self._pe}: {self._hbm.books!r}, {self._tcm.books!r}>"

    @property
    def hbm_statistics(self) -> AllocatorStatistics:
        """Bytes in use, the peak, and the holes of the slice."""
        return self._hbm.books.statistics

    @property
    def tcm_statistics(self) -> AllocatorStatistics:
        """Bytes in use, the peak, and the holes of the TCM."""
        return self._tcm.books.statistics

    def alloc_hbm(self, nbytes: int, name: str = "alloc_hbm") -> PhysAddr:
        """Return the first of so many free bytes; an OutOfMemoryError names ``name``."""
        return self._hbm.allocate(nbytes, name)

    def free_hbm(self, pa: PhysAddr | int, nbytes: int) -> None:
        """Give back exactly what ``alloc_hbm`` returned; anything else is an AllocationError."""
        self._hbm.free(pa, nbytes)

    def alloc_tcm(self, nbytes: int, name: str = "alloc_tcm") -> PhysAddr:
        """Return the first of so many free bytes; an OutOfMemoryError names ``name``."""
        return self._tcm.allocate(nbytes, name)

    def free_tcm(self, pa: PhysAddr | int, nbytes: int) -> None:
        """Give back exactly what ``alloc_tcm`` returned; anything else is an AllocationError."""
        self._tcm.free(pa, nbytes)


class _Memory:
    """Free and taken bytes of one memory, by physical addresses."""

    def __init__(self, name: str, base: int, num_bytes: int) -> None:
        self.books = Allocator(name, num_bytes, start=base)

    def allocate(self, num_bytes: int, requester: str) -> PhysAddr:
        return PhysAddr.decode(self.books.allocate(num_bytes, requester=requester))

    def free(self, pa: PhysAddr | int, num_bytes: int) -> None:
        address = pa.encode() if isinstance(pa, PhysAddr) else pa
        if type(address) is not int:
            found, fix = f"a free at {pa!r}", "pass what the allocation returned"
            raise AllocationError(self.books.name, found, "a PhysAddr, or its encoded int", fix)
        self.books.free(address, num_bytes)


class VirtualAllocator:
    """Gives out whole pages of a virtual range, the lowest that fit; every free is checked.

    >>> allocator = VirtualAllocator(0x1_0000_0000, 64 << 30, 4096)
    >>> first, second = allocator.alloc(5000), allocator.alloc(1)
    >>> hex(first), hex(second)
    ('0x100000000', '0x100002000')
    >>> allocator.free(first, 5000)
    """

    def __init__(self, va_base: int, va_size: int, page_size: int) -> None:
        self.va_base, self.va_size, self.page_size = va_base, va_size, page_size
        for name, low in (("va_base", 0), ("va_size", 1), ("page_size", 1)):
            _check_least("VirtualAllocator", name, getattr(self, name), low, "correct it")
        for name in ("va_base", "va_size"):
            value = getattr(self, name)
            if value % page_size:
                expected = f"whole pages of {page_size} bytes"
                raise SpecError(f"VirtualAllocator {name}", hex(value), expected, "align it")
        self._space = Allocator("virtual range", va_size, start=va_base, alignment=page_size)

    @property
    def statistics(self) -> AllocatorStatistics:
        """Bytes in use, the peak, and the holes."""
        return self._space.statistics

    def alloc(self, nbytes: int, name: str = "alloc") -> int:
        """Return the start of pages for so many bytes; an OutOfMemoryError names ``name``."""
        if type(nbytes) is int and nbytes > 0:
            nbytes = self._rounded(nbytes)
        return self._space.allocate(nbytes, requester=name)

    def free(self, va: int, nbytes: int) -> None:
        """Give back the pages of what was asked for; anything else is an AllocationError."""
        self._space.free(va, self._rounded(nbytes))

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.page_size) * self.page_size
