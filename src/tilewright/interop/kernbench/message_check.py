"""Checks of messages against a machine, before anything is sent; errors name message and field."""

from typing import Any

from tilewright.errors import RequestError, TilewrightError
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.runtime.memory import DeviceMemory
from tilewright.runtime.placement.pages import MemoryPart

ALL = "all"


def refuse(message: Any, field: str, found: str, expected: str, fix: str) -> RequestError:
    """Return the error of a message's field."""
    name = f"{type(message).__name__} {getattr(message, 'request_id', '')!r}"
    return RequestError(f"{name}, {field}", found, expected, fix)


def check_envelope(message: Any) -> None:
    """Refuse ids that are no texts, or empty."""
    for field in ("correlation_id", "request_id"):
        value = getattr(message, field)
        if not isinstance(value, str) or not value:
            raise refuse(message, field, repr(value), "a text that is not empty", "name it")


def units_of(message: Any, field: str, count: int) -> tuple[int, ...]:
    """Return the SIPs, cubes or PEs that a field names, in order, of ``count`` that there are."""
    value = getattr(message, field)
    if value == ALL:
        return tuple(range(count))
    units = value if isinstance(value, tuple | list) else (value,)
    for unit in units:
        if type(unit) is not int or not 0 <= unit < count:
            expected = f'numbers from 0 to {count - 1}, or "all"'
            raise refuse(message, field, repr(value), expected, "name units of the machine")
    if not units or len(set(units)) < len(units):
        raise refuse(message, field, repr(value), "each unit once, and at least one", "correct it")
    return tuple(sorted(units))


def pe_of(message: Any, side: str, machine: Machine) -> PeCoord:
    """Return the PE that the fields ``<side>_sip``, ``<side>_cube`` and ``<side>_pe`` name."""
    grid = machine.grid
    counts = {"sip": grid.num_sips, "cube": grid.num_cubes_per_sip, "pe": grid.num_pes_per_cube}
    for level, count in counts.items():
        field = f"{side}_{level}"
        value = getattr(message, field)
        if type(value) is not int or not 0 <= value < count:
            expected = f"a number from 0 to {count - 1}"
            raise refuse(message, field, repr(value), expected, "name a PE of the machine")
    return PeCoord(*(getattr(message, f"{side}_{level}") for level in counts))


def check_only_target(message: Any, pe: PeCoord) -> None:
    """Refuse ``target_cubes`` and ``target_pe`` that name other units than the PE itself."""
    for field, own in (("target_cubes", pe.cube), ("target_pe", pe.pe)):
        value = getattr(message, field)
        if value not in (ALL, own, (own,), [own]):
            fix = "send one message to each PE"
            raise refuse(message, field, repr(value), f'{own}, as the message says, or "all"', fix)


def part_of(message: Any, side: str, pe: PeCoord, memory: DeviceMemory) -> MemoryPart:
    """Return the bytes at ``<side>_pa``, which lie in a memory of the PE or of its cube."""
    field = f"{side}_pa"
    address = getattr(message, field)
    part = range_of(message, (field, "nbytes"), address, message.nbytes, memory)
    if part.place != MemoryPlace.of(part.place.kind, pe):
        owner = "its cube's SRAM" if part.place.kind is MemoryKind.SRAM else "its own memory"
        found = f"{address:#x}, which is in {part.place}"
        expected = f"an address of {place_name(pe)}: {owner}"
        fix = f"correct {field}, or {side}_sip, {side}_cube and {side}_pe"
        raise refuse(message, field, found, expected, fix)
    return part


def range_of(
    message: Any,
    fields: tuple[str, str],
    address: object,
    num_bytes: object,
    memory: DeviceMemory,
) -> MemoryPart:
    """Return the memory and the offset of physical bytes; refuse what is in no single memory.

    ``fields`` are the names of the address and of the size in the message.
    """
    field, size_field = fields
    if type(address) is not int:
        found, fix = repr(address), "write PhysAddr.encode() of it"
        raise refuse(message, field, found, "a physical address as an int", fix)
    try:
        place, offset = memory.place_of(address)
    except TilewrightError as error:
        found = f"{address:#x}" if address >= 0 else str(address)
        expected = f"an address in HBM, SRAM or TCM ({error.found})"
        raise refuse(message, field, found, expected, "correct the address") from error
    room = memory.capacity_bytes(place) - offset
    if type(num_bytes) is not int or not 1 <= num_bytes <= room:
        found = f"{num_bytes!r} bytes from {address:#x} on"
        expected = f"1 to {room} bytes, up to the end of {place}"
        raise refuse(message, size_field, found, expected, "split it by memories")
    return MemoryPart(place, offset, num_bytes)
