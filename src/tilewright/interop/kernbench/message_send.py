"""From messages of KernBench to requests of our runtime: memory, DMA and page tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.errors import InternalError
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.message import (
    ALL,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    MmuUnmapMsg,
    PeDmaMsg,
    TranslationMsg,
    check_only_target,
    part_of,
    pe_of,
    range_of,
    refuse,
    units_of,
)
from tilewright.machine.build import Machine
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.memory.address import (
    MemoryKind,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualRange,
)
from tilewright.memory.mapping import MapMsg, MapTarget, UnmapMsg
from tilewright.runtime.placement.pages import MemoryPart
from tilewright.runtime.request import Request
from tilewright.runtime.transfer import Bytes, pe_dma, read_parts, send_mapping, write_parts

DIRECTIONS = {"read": Access.READ, "write": Access.WRITE}
PATTERNS = '"zero", a byte (0 to 255), bytes to repeat, or None, which changes no byte'
_NODES = {
    MemoryKind.HBM: NodeKind.HBM_CTRL,
    MemoryKind.SRAM: NodeKind.SRAM,
    MemoryKind.TCM: NodeKind.PE_DMA,
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A message on its way: complete when all of its requests are."""

    requests: tuple[Request, ...]
    facts: Mapping[str, Any]  # entries of its trace that are known at once
    outcome: Callable[[], Mapping[str, Any]] = dict
    """Returns entries of its trace that are known when it has succeeded."""
    fails_quietly: bool = False  # whether its Completion alone says that it failed


# -- memory ----------------------------------------------------------------------------------------


def send_write(host: RuntimeContext, message: MemoryWriteMsg) -> Sent:
    """Write a pattern or a buffer of the host to one memory."""
    part, facts = _host_access(host, message, "dst")
    request = write_parts(host.driver, _what(message), [(part, _source(message))])
    return Sent((_timed(request),), facts)


def send_read(host: RuntimeContext, message: MemoryReadMsg) -> Sent:
    """Read one memory to the host."""
    part, facts = _host_access(host, message, "src")
    request, (data,) = read_parts(host.driver, _what(message), [part])
    return Sent((_timed(request),), facts, lambda: {"data": data.tobytes()})


def _host_access(
    host: RuntimeContext, message: Any, side: str
) -> tuple[MemoryPart, dict[str, Any]]:
    """Return the bytes that the host writes or reads, and what is known of the access at once."""
    pe = pe_of(message, side, host.machine)
    check_only_target(message, pe)
    part = part_of(message, side, pe, host.driver.memory)
    path = _path(host.machine, host.machine.host, part, pe.pe)
    return part, _memory_facts(message, part, path)


def send_dma(host: RuntimeContext, message: PeDmaMsg) -> Sent:
    """Let the DMA of a PE move bytes, for their time."""
    machine, driver = host.machine, host.driver
    source, target = (pe_of(message, side, machine) for side in ("src", "dst"))
    part = part_of(message, "dst", target, driver.memory)
    access = DIRECTIONS.get(message.direction)
    if access is None:
        expected = " or ".join(map(repr, DIRECTIONS))
        raise refuse(message, "direction", repr(message.direction), expected, "say which")
    request = pe_dma(driver, _what(message), source, part, access)
    dma = machine.node_of(NodeKind.PE_DMA, source)
    path = _path(machine, dma, part, source.pe)
    return Sent((request,), {**_memory_facts(message, part, path), "direction": access.value})


def _source(message: MemoryWriteMsg) -> Bytes | None:
    """Return the bytes of a write; None where it changes none."""
    if message.src_kind == "host_buffer":
        return _host_bytes(message)
    if message.src_kind != "pattern":
        expected = "'pattern' or 'host_buffer'"
        raise refuse(message, "src_kind", repr(message.src_kind), expected, "say which")
    match message.pattern:
        case None:
            return None
        case "zero":
            return np.zeros(message.nbytes, np.uint8)
        case bytes(repeated) if repeated:
            return np.resize(np.frombuffer(repeated, np.uint8), message.nbytes)
        case int(byte) if type(byte) is int and 0 <= byte < 256:
            return np.full(message.nbytes, byte, np.uint8)
    raise refuse(message, "pattern", repr(message.pattern), PATTERNS, "write one of them")


def _host_bytes(message: MemoryWriteMsg) -> Bytes:
    """Return a copy of a host buffer's bytes, in their order in memory."""
    try:
        data = np.frombuffer(memoryview(message.host_buffer).cast("B"), np.uint8)
    except (TypeError, ValueError) as error:
        found = f"{type(message.host_buffer).__name__} ({error})"
        expected = "bytes or a contiguous array"
        raise refuse(message, "host_buffer", found, expected, "copy it into one") from error
    if data.size != message.nbytes:
        found, expected = f"{data.size} bytes", f"nbytes={message.nbytes}"
        raise refuse(message, "host_buffer", found, expected, "make them equal")
    return data.copy()


def _timed(request: Request | None) -> Request:
    if request is None:
        raise InternalError("submit", "no request", "a timed message", "report this")
    return request


def _what(message: Any) -> str:
    return f"{message.msg_type} {message.request_id!r}"


def _memory_facts(message: Any, part: MemoryPart, path: tuple[str, ...]) -> dict[str, Any]:
    return {"nbytes": message.nbytes, "memory": str(part.place), "path": path}


def _path(machine: Machine, source: int, part: MemoryPart, spread: int) -> tuple[str, ...]:
    """Return the names of the nodes from a requester to a memory."""
    target = machine.node_of(_NODES[part.place.kind], part.place.pe)
    nodes = [source]
    if source != target:  # a PE reaches its own TCM without the network
        hops = machine.route(source, target, Traffic.REQUEST, spread)
        nodes += [machine.links[link].dst for link, _ in hops]
    return tuple(machine.nodes[node].name for node in nodes)


# -- page tables -----------------------------------------------------------------------------------


def send_map(host: RuntimeContext, message: MmuMapMsg) -> Sent:
    """Add translations; a byte that is mapped already fails the request."""
    entries = _entries(message, ("va", "pa", "size"))
    for index, (_, pa, size) in enumerate(entries):
        fields = f"entries[{index}]['pa']", f"entries[{index}]['size']"
        range_of(message, fields, pa, size, host.driver.memory)
    mappings = tuple(
        RangeMapping(VirtualRange(VirtualByte(va), size), PhysicalByte(pa))
        for va, pa, size in entries
    )
    return _send_all(host, message, lambda target: MapMsg(target, mappings))


def send_unmap(host: RuntimeContext, message: MmuUnmapMsg) -> Sent:
    """Take translations out; one that is not there as it was mapped fails the request."""
    entries = _entries(message, ("va", "size"))
    ranges = tuple(VirtualRange(VirtualByte(va), size) for va, size in entries)
    return _send_all(host, message, lambda target: UnmapMsg(target, ranges))


def _send_all(
    host: RuntimeContext,
    message: TranslationMsg,
    message_to: Callable[[MapTarget], MapMsg | UnmapMsg],
) -> Sent:
    """Send one message of ours to each SIP, and to each PE number where not all are meant."""
    grid = host.machine.grid
    sips = units_of(message, "target_sips", grid.num_sips)
    cubes = units_of(message, "target_cubes", grid.num_cubes_per_sip)
    pes = units_of(message, "target_pe", grid.num_pes_per_cube)
    numbers = (None,) if message.target_pe == ALL else pes
    requests = tuple(
        send_mapping(host.driver, _what(message), message_to(MapTarget(sip, cubes, number)))
        for sip, number in product(sips, numbers)
    )
    num_pes = len(sips) * len(cubes) * len(pes)
    facts = {"num_entries": len(message.entries), "num_pes": num_pes}
    return Sent(requests, facts, fails_quietly=True)


def _entries(message: TranslationMsg, keys: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the values of all entries in the order of keys; refuse others, and what is no int."""
    entries = message.entries
    if not isinstance(entries, tuple | list) or not entries:
        expected = "a tuple of at least one dict"
        raise refuse(message, "entries", repr(entries), expected, "list what to map")
    for index, entry in enumerate(entries):
        field = f"entries[{index}]"
        if not isinstance(entry, Mapping) or set(entry) != set(keys):
            expected = f"a dict with exactly {', '.join(keys)}"
            raise refuse(message, field, repr(entry), expected, "correct the entry")
        for key in keys:
            low = 1 if key == "size" else 0
            if type(entry[key]) is not int or entry[key] < low:
                where, expected = f"{field}[{key!r}]", f"an int of at least {low}"
                raise refuse(message, where, repr(entry[key]), expected, "correct it")
    return [tuple(entry[key] for key in keys) for entry in entries]
