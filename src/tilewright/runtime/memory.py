"""The memories of a device: their bytes, who has which part, and which memory an address is in."""

from dataclasses import dataclass, field

from tilewright.engine import EngineKind
from tilewright.errors import DeviceError
from tilewright.executor.effect import EffectLog, Storage, build_effect_log
from tilewright.executor.run import Memory
from tilewright.machine.address import Location, PhysicalAddress, SubUnit
from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord, PeCoord
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.allocator import Allocator
from tilewright.memory.store import ByteStore

_UNITS = {
    MemoryKind.HBM: SubUnit.HBM,
    MemoryKind.SRAM: SubUnit.SRAM,
    MemoryKind.TCM: SubUnit.TCM,
}
_KINDS = {unit: kind for kind, unit in _UNITS.items()}


@dataclass(eq=False)
class DeviceMemory:
    """Memories are made at first use; a memory's number is the order of its first use."""

    machine: Machine
    memories: list[Memory] = field(default_factory=list)
    _numbers: dict[MemoryPlace, int] = field(default_factory=dict)
    _allocators: dict[MemoryPlace, Allocator] = field(default_factory=dict)
    _located: dict[tuple[int, int], int] = field(default_factory=dict)  # by die and slice

    def number(self, place: MemoryPlace) -> int:
        if place not in self._numbers:
            self._numbers[place] = len(self.memories)
            store = ByteStore(str(place), self.capacity_bytes(place))
            self.memories.append(Memory(place, store))
        return self._numbers[place]

    def capacity_bytes(self, place: MemoryPlace) -> int:
        return self.machine.addresses.size_of(_UNITS[place.kind])

    def storage(self, place: MemoryPlace) -> Storage:
        return self.memories[self.number(place)].storage

    def allocator(self, place: MemoryPlace) -> Allocator:
        """In whole pages; of a TCM behind what is reserved."""
        if place not in self._allocators:
            machine = self.machine
            tcm, page_bytes = machine.spec.pe.tcm, machine.spec.pe.mmu.page_bytes
            start = tcm.reserved_bytes if place.kind is MemoryKind.TCM else 0
            size = self.capacity_bytes(place) - start
            self._allocators[place] = Allocator(str(place), size, start=start, alignment=page_bytes)
        return self._allocators[place]

    def tcm_used_bytes(self, pe: PeCoord) -> int:
        """What tensors have of a PE's TCM: programs have the rest."""
        taken = self._allocators.get(MemoryPlace(MemoryKind.TCM, pe))
        return 0 if taken is None else taken.statistics.used_bytes

    def physical(self, place: MemoryPlace, offset: int) -> int:
        """The address of a byte of a memory."""
        where = place.pe.cube_coord if place.kind is MemoryKind.SRAM else place.pe
        location = Location(_UNITS[place.kind], where, offset)
        return self.machine.addresses.encode(location).value

    def build_effect_log(self, kind: EngineKind) -> EffectLog:
        """Build a log of what accesses on an engine do to these memories, at their times."""
        return build_effect_log(kind, self.memories)

    def locate(self, physical: int) -> tuple[int, int, int]:
        """The memory that a physical byte is in, its address there, and the bytes from it on."""
        layout = self.machine.addresses
        die, offset = divmod(physical, layout.die_bytes)
        key = die, offset // layout.slice_bytes  # slices of a die lie side by side
        number = self._located.get(key)
        if number is not None:
            inside = offset % layout.slice_bytes
            return number, inside, layout.slice_bytes - inside
        place, inside = self.place_of(physical)
        number = self.number(place)
        if place.kind is MemoryKind.HBM:
            self._located[key] = number
        return number, inside, self.capacity_bytes(place) - inside

    def place_of(self, physical: int) -> tuple[MemoryPlace, int]:
        """The same, by the memory's name; what is no memory of programs is refused."""
        location = self.machine.addresses.decode(PhysicalAddress(physical))
        kind = _KINDS.get(location.unit)
        match location.where:
            case PeCoord() as pe if kind is not None:
                return MemoryPlace(kind, pe), location.offset
            case CubeCoord(sip=sip, cube=cube) if kind is not None:
                return MemoryPlace(kind, PeCoord(sip, cube, 0)), location.offset
            case _:
                found = f"physical {physical:#x} in {location.unit.value}"
                fix = "correct the address"
                raise DeviceError("access", found, "an address in HBM, SRAM or TCM", fix)
