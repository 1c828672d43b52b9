"""What a host may ask of a machine directly. Addresses are physical; no source code travels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.errors import InternalError, RequestError, TilewrightError
from tilewright.machine.coords import PeCoord
from tilewright.memory.mapping import MapMsg, UnmapMsg
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.bind import LaunchOptions, LaunchOwner
from tilewright.runtime.launch.launch import launch
from tilewright.runtime.placement.pages import MemoryPart
from tilewright.runtime.request import Request
from tilewright.runtime.transfer import Bytes, pe_dma, read_parts, send_mapping, write_parts


@dataclass(frozen=True, slots=True)
class MemoryWriteMsg:
    """The host writes neighbouring bytes: ``data``, or ``pattern`` again and again."""

    address: int  # physical, of HBM
    num_bytes: int
    data: bytes | None = None
    pattern: bytes = b"\0"


@dataclass(eq=False, slots=True)
class MemoryReadMsg:
    """The host reads neighbouring bytes; ``data`` has them once the request is complete."""

    address: int
    num_bytes: int
    data: bytes | None = field(default=None, init=False)


@dataclass(frozen=True, slots=True)
class PeDmaMsg:
    """The DMA of a PE reads or writes memory, for its time alone: no byte changes."""

    pe: PeCoord
    address: int
    num_bytes: int
    access: Access = Access.READ


@dataclass(frozen=True, slots=True)
class KernelLaunchMsg:
    """A launch as a message."""

    kernel: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: LaunchOptions = field(default_factory=LaunchOptions)


Message = MemoryWriteMsg | MemoryReadMsg | PeDmaMsg | KernelLaunchMsg | MapMsg | UnmapMsg


def submit_message(driver: Driver, owner: LaunchOwner, message: Message) -> Request:
    """Put a message on its way; refuse one that cannot be carried out."""
    match message:
        case MemoryWriteMsg():
            part = _part(driver, "memory write", message.address, message.num_bytes)
            request = write_parts(driver, "memory write", [(part, _written(message))])
        case MemoryReadMsg():
            part = _part(driver, "memory read", message.address, message.num_bytes)
            request, (space,) = read_parts(driver, "memory read", [part])
            if request is not None:
                request.listeners.append(partial(_take_data, message, space))
        case PeDmaMsg(pe=pe, access=access):
            part = _part(driver, "PE DMA", message.address, message.num_bytes)
            request = pe_dma(driver, "PE DMA", pe, part, access)
        case KernelLaunchMsg():
            kernel, args, kwargs = message.kernel, message.args, message.kwargs
            request = launch(driver, owner, kernel, args, kwargs, message.options).request
        case MapMsg():
            request = send_mapping(driver, "map", message)
        case UnmapMsg():
            request = send_mapping(driver, "unmap", message)
        case _:
            expected = "a message such as MemoryWriteMsg or KernelLaunchMsg"
            raise RequestError("submit", repr(message), expected, "build one of the message types")
    if request is None:
        raise InternalError("submit", "no request", "a timed message", "report this")
    return request


def _take_data(message: MemoryReadMsg, space: Bytes) -> None:
    message.data = space.tobytes()


def _written(message: MemoryWriteMsg) -> Bytes | bytes:
    if message.data is None:
        if not message.pattern:
            raise RequestError("memory write", "an empty pattern", "at least a byte", "give one")
        return message.pattern
    if len(message.data) != message.num_bytes:
        found, expected = f"{len(message.data)} bytes of data", f"num_bytes={message.num_bytes}"
        raise RequestError("memory write", found, expected, "make them equal")
    return np.frombuffer(message.data, np.uint8)


def _part(driver: Driver, where: str, address: int, num_bytes: int) -> MemoryPart:
    try:
        place, offset = driver.memory.place_of(address)
    except TilewrightError as error:
        raise RequestError(where, error.found, error.expected, error.fix) from error
    room = driver.memory.capacity_bytes(place) - offset
    if type(num_bytes) is not int or not 1 <= num_bytes <= room:
        found = f"{num_bytes!r} bytes from {address:#x}"
        expected = f"1 to {room}, up to the end of {place}"
        raise RequestError(where, found, expected, "split it by memories")
    return MemoryPart(place, offset, num_bytes)
