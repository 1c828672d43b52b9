"""The memories of a device: their bytes, who has which part, and which memory an address is in."""

from dataclasses import dataclass, field

from tilewright.device.build import Device
from tilewright.errors import DeviceError
from tilewright.language.effect import EffectLog, build_effect_log
from tilewright.language.run import Memory
from tilewright.machine.address import PhysicalAddress, SubUnit
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.allocator import Allocator
from tilewright.memory.store import ByteStore

__all__ = ("DeviceMemory",)


@dataclass(eq=False)
class DeviceMemory:
    """HBM slices, made at first use; a memory's number is the order of its first use."""

    device: Device
    memories: list[Memory] = field(default_factory=list)
    _numbers: dict[PeCoord, int] = field(default_factory=dict)
    _allocators: dict[PeCoord, Allocator] = field(default_factory=dict)
    _located: dict[tuple[int, int], int] = field(default_factory=dict)  # by die and slice

    def slice_of(self, pe: PeCoord) -> int:
        """The number of a PE's slice."""
        if pe not in self._numbers:
            layout = self.device.machine.addresses
            store = ByteStore(f"{place_name(pe)}.hbm", layout.slice_bytes)
            self._numbers[pe] = len(self.memories)
            self.memories.append(Memory(pe, store))
        return self._numbers[pe]

    def allocator(self, pe: PeCoord) -> Allocator:
        """Of a PE's slice, in whole pages."""
        if pe not in self._allocators:
            machine = self.device.machine
            self._allocators[pe] = Allocator(
                f"{place_name(pe)}.hbm",
                machine.addresses.slice_bytes,
                alignment=machine.spec.pe.mmu.page_bytes,
            )
        return self._allocators[pe]

    def build_effect_log(self) -> EffectLog:
        """What accesses do to these memories, at their times."""
        return build_effect_log(self.device.engine.kind, self.memories)

    def locate(self, physical: int) -> tuple[int, int]:
        """The memory that a physical byte is in, and its address there."""
        layout = self.device.machine.addresses
        die, offset = divmod(physical, layout.die_bytes)
        place, inside = divmod(offset, layout.slice_bytes)  # slices of a die lie side by side
        number = self._located.get((die, place))
        if number is None:
            number = self._located[die, place] = self._slice_with(physical)
        return number, inside

    def _slice_with(self, physical: int) -> int:
        location = self.device.machine.addresses.decode(PhysicalAddress(physical))
        if location.unit is not SubUnit.HBM or not isinstance(location.where, PeCoord):
            found = f"physical {physical:#x} in {location.unit.value}"
            raise DeviceError("access", found, "an address in HBM", "map HBM pages")
        return self.slice_of(location.where)
