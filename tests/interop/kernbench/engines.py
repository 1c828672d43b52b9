"""Engines for tests of messages, and messages with ids that nobody looks at."""

from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.host import PeCoord, RuntimeContext
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.message import (
    KernelLaunchMsg,
    KernelRef,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    MmuUnmapMsg,
    PeDmaMsg,
)
from tilewright.interop.kernbench.value import Completion
from tilewright.machine import Machine, build_machine, parse_machine

IDS = {"correlation_id": "test", "request_id": "r"}
HOME = PeCoord(0, 0, 1)


@cache
def machine() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def engine(**options: Any) -> GraphEngine:
    return GraphEngine.of_host(RuntimeContext(machine(), **options))


def hbm(offset: int = 0, pe: PeCoord = HOME) -> int:
    return machine().addresses.hbm(pe, offset).value


def place(side: str, pe: PeCoord) -> dict[str, int]:
    return {f"{side}_sip": pe.sip, f"{side}_cube": pe.cube, f"{side}_pe": pe.pe}


def write(address: int, nbytes: int, pe: PeCoord = HOME, **fields: Any) -> MemoryWriteMsg:
    given = {**IDS, **place("dst", pe), "dst_pa": address, "nbytes": nbytes, **fields}
    return MemoryWriteMsg(**given)


def read(address: int, nbytes: int, pe: PeCoord = HOME, **fields: Any) -> MemoryReadMsg:
    given = {**IDS, **place("src", pe), "src_pa": address, "nbytes": nbytes, **fields}
    return MemoryReadMsg(**given)


def dma(by: PeCoord, address: int, nbytes: int, pe: PeCoord = HOME, **fields: Any) -> PeDmaMsg:
    sides = {**place("src", by), **place("dst", pe)}
    return PeDmaMsg(**{**IDS, **sides, "dst_pa": address, "nbytes": nbytes, **fields})


def map_(va: int, pa: int, size: int, **fields: Any) -> MmuMapMsg:
    return MmuMapMsg(**{**IDS, "entries": ({"va": va, "pa": pa, "size": size},), **fields})


def unmap(va: int, size: int, **fields: Any) -> MmuUnmapMsg:
    return MmuUnmapMsg(**{**IDS, "entries": ({"va": va, "size": size},), **fields})


def launch(name: str, *args: Any, **fields: Any) -> KernelLaunchMsg:
    return KernelLaunchMsg(**{**IDS, "kernel_ref": KernelRef(name), "args": args, **fields})


def carry_out(on: GraphEngine, message: Any) -> tuple[Completion, dict[str, Any]]:
    """Submit a message, wait for it, and return its completion and trace."""
    handle = on.submit(message)
    on.wait(handle)
    return on.get_completion(handle)


def run_kernel(on: GraphEngine, kernel: Callable[..., Any], *args: Any, **fields: Any) -> Any:
    """Register a kernel, launch it and return the trace."""
    on.kernels["kernel"] = kernel
    return carry_out(on, launch("kernel", *args, **fields))[1]
