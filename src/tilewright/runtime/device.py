"""The device of a context: memories and MMUs that stay, and what an error ends and builds anew."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.device.build import Device, build_device
from tilewright.device.command import CommandPath
from tilewright.device.mmu import Mmu
from tilewright.engine import AUTO, Auto, Engine, EngineKind
from tilewright.engine.fault import first_line
from tilewright.engine.hub import Hub
from tilewright.errors import DeviceError, TilewrightError
from tilewright.executor.effect import EffectLog, Storage
from tilewright.executor.launcher import Launcher
from tilewright.executor.quiet import quiet_values, rare_collections
from tilewright.executor.run import Memory
from tilewright.machine.address import Location, PhysicalAddress, SubUnit
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import place_name
from tilewright.machine.spec import MmuSpec
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.allocator import Allocator
from tilewright.memory.page_table import PageTable
from tilewright.memory.store import ByteStore

_KINDS = {SubUnit(kind.value): kind for kind in MemoryKind}  # the others are no memories


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
        return self.machine.addresses.size_of(SubUnit(place.kind.value))

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
        location = Location(SubUnit(place.kind.value), where, offset)
        return self.machine.addresses.encode(location).value

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
        where = location.where
        if kind is None or isinstance(where, SipCoord):
            found, fix = f"physical {physical:#x} in {location.unit.value}", "correct the address"
            raise DeviceError("access", found, "an address in HBM, SRAM or TCM", fix)
        pe = where if isinstance(where, PeCoord) else PeCoord(where.sip, where.cube, 0)
        return MemoryPlace(kind, pe), location.offset


class Mmus(dict[PeCoord, Mmu]):
    """The MMUs that were asked for, by PE; each is made when it is first asked for."""

    def __init__(self, spec: MmuSpec, table: PageTable | None = None) -> None:
        super().__init__()
        self._spec = spec
        self._table = table  # of all of them; None: each has its own

    def __missing__(self, pe: PeCoord) -> Mmu:
        name = f"{place_name(pe)}.mmu"
        table = self._table
        if table is None:
            table = PageTable(name, self._spec.page_bytes)
        mmu = self[pe] = Mmu(name, self._spec, table)
        return mmu


@dataclass(frozen=True, slots=True)
class RunningDevice:
    """One engine and what was built on it. Memories and page tables are not part of it."""

    device: Device
    path: CommandPath
    effects: EffectLog
    hub: Hub
    launcher: Launcher


def build_device_at(
    machine: Machine, choice: EngineKind | Auto = AUTO, *, start_ps: int = 0
) -> Device:
    """Build a device on which nothing is under way, with a clock that stands at ``start_ps``."""
    with rare_collections():
        device = build_device(machine, choice)
    device.engine.advance(start_ps)
    return device


def apply_served(effects: EffectLog, engine: Engine, error: BaseException) -> None:
    """Apply what memories had served when a run ended with ``error``.

    A value that cannot be computed is noted beside that error, and ends this.
    """
    try:
        with quiet_values():
            effects.apply(engine.take_effects())
    except TilewrightError as second:
        error.add_note(f"and then {first_line(second)}")


@dataclass(slots=True)
class HostEffect:
    """Something that the host has asked for; an error in a kernel does not lose it.

    It removes itself from the effects that are under way when it happens.
    """

    act: Callable[[], object]
    changes: bool  # memories or page tables
    under_way: "dict[int, HostEffect]"  # by number in the log of a device
    number: int = -1

    def apply(self) -> bool:
        del self.under_way[self.number]
        self.act()
        return self.changes
