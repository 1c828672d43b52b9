"""Messages of KernBench programs: ``kernbench.runtime_api.kernel``.

Plain values: what a field may be is checked when the message is submitted, against the machine,
before anything is sent. Errors name message and field.
Every message has ``msg_type``, ``correlation_id`` (of the context) and ``request_id``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import RequestError, TilewrightError
from tilewright.interop.kernbench.tensor import TensorShard
from tilewright.interop.kernbench.value import Completion
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.runtime.device import DeviceMemory
from tilewright.runtime.placement.pages import MemoryPart

Units = int | tuple[int, ...] | str
"""Which SIPs, cubes or PEs: one, several, or "all"."""


def _msg_type(text: str) -> str:
    """Return the field ``msg_type`` of a message class; no caller sets it."""
    constant: str = field(default=text, init=False)
    return constant


@dataclass(frozen=True, slots=True)
class Message:
    """What every message has; ``msg_type`` comes last."""

    correlation_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class MemoryWriteMsg(Message):
    """The host writes neighbouring bytes of one memory of a PE, or of its cube.

    With ``src_kind="pattern"`` the bytes are ``pattern``: ``"zero"``, a byte (0 to 255), bytes that
    are repeated, or None, which takes the time of the write and changes no byte. With
    ``src_kind="host_buffer"`` they are those of ``host_buffer`` (bytes, a NumPy array) at submit.
    """

    dst_sip: int
    dst_cube: int
    dst_pe: int
    dst_pa: int  # physical address of the first byte
    nbytes: int
    src_kind: str = "pattern"
    pattern: str | int | bytes | None = None
    target_cubes: Units = "all"  # "all", or the cube of dst: a write has one target
    target_pe: Units = "all"
    host_buffer: Any = None
    msg_type: str = _msg_type("memory_write")


@dataclass(frozen=True, slots=True)
class MemoryReadMsg(Message):
    """The host reads neighbouring bytes of one memory; the trace has them as ``data``."""

    src_sip: int
    src_cube: int
    src_pe: int
    src_pa: int
    nbytes: int
    target_cubes: Units = "all"
    target_pe: Units = "all"
    msg_type: str = _msg_type("memory_read")


@dataclass(frozen=True, slots=True)
class PeDmaMsg(Message):
    """The DMA of PE ``src`` reads or writes memory of PE ``dst``, for its time: no byte changes."""

    src_sip: int
    src_cube: int
    src_pe: int
    dst_sip: int
    dst_cube: int
    dst_pe: int
    dst_pa: int
    nbytes: int
    direction: str = "read"  # or "write"
    msg_type: str = _msg_type("pe_dma")


@dataclass(frozen=True, slots=True)
class KernelRef:
    """The kernel of a launch: ``builtin`` is registered by name, ``deployed`` is refused."""

    name: str
    kind: str = "builtin"
    deploy_address: int | None = None


@dataclass(frozen=True, slots=True)
class TensorArg:
    """A tensor argument: the kernel gets ``va_base``, an integer that counts bytes."""

    shards: tuple[TensorShard, ...]
    va_base: int


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number as an argument, of dtype ``i32`` or ``f32``; the kernel gets it as it is."""

    dtype: str
    value: int | float


@dataclass(frozen=True, slots=True)
class KernelLaunchMsg(Message):
    """A program of the kernel on each target PE of each target cube of one SIP."""

    kernel_ref: KernelRef
    args: tuple[TensorArg | ScalarArg, ...] = ()
    target_cubes: Units = "all"
    target_pe: Units = "all"
    target_start_ns: float | None = None  # no program begins before this simulated time
    target_sip: int | None = None  # ours; None: that of the shards in args, else 0
    msg_type: str = _msg_type("kernel_launch")


@dataclass(frozen=True, slots=True)
class TranslationMsg(Message):
    """A change of the page tables of PEs."""

    entries: tuple[Mapping[str, int], ...]
    target_sips: Units = "all"
    target_cubes: Units = "all"
    target_pe: Units = "all"


@dataclass(frozen=True, slots=True)
class MmuMapMsg(TranslationMsg):
    """Adds translations to the page tables of PEs; an entry has ``va``, ``pa`` and ``size``."""

    msg_type: str = _msg_type("mmu_map")


@dataclass(frozen=True, slots=True)
class MmuUnmapMsg(TranslationMsg):
    """Takes translations out, each as it was mapped; an entry has ``va`` and ``size``."""

    msg_type: str = _msg_type("mmu_unmap")


@dataclass(frozen=True, slots=True)
class ResponseMsg(Message):
    """The completion of a request on the reverse path; no program submits one."""

    completion: Completion
    msg_type: str = _msg_type("response")


ALL = "all"
TensorArgShard = TensorShard  # KernBench has two names for it


def refuse(message: Any, field: str, found: str, expected: str, fix: str) -> RequestError:
    """Return the error of a message's field."""
    name = f"{type(message).__name__} {getattr(message, 'request_id', '')!r}"
    return RequestError(f"{name}, {field}", found, expected, fix)


def check_envelope(message: Any) -> None:
    """Refuse ids that are no texts, or empty."""
    for name in ("correlation_id", "request_id"):
        value = getattr(message, name)
        if not isinstance(value, str) or not value:
            raise refuse(message, name, repr(value), "a text that is not empty", "name it")


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
    for name, own in (("target_cubes", pe.cube), ("target_pe", pe.pe)):
        value = getattr(message, name)
        if value not in (ALL, own, (own,), [own]):
            fix = "send one message to each PE"
            raise refuse(message, name, repr(value), f'{own}, as the message says, or "all"', fix)


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
    message: Any, fields: tuple[str, str], address: object, num_bytes: object, memory: DeviceMemory
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
