"""When the accesses of a PE set out and end, by sums that anybody can do: ME1 to ME3."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access
from tilewright.engine import EngineKind, TaskGraph
from tilewright.language.dtype import float16
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.memory.address import MemoryKind
from tilewright.runtime.workspace import Workspace
from tilewright.units import PS_PER_NS
from tilewright.validation.engine_run import finish, machine_named
from tilewright.validation.finding import Finding, Row, exact

MACHINE = "ahbm-small"
SEED = 1
PE = PeCoord(0, 0, 0)
COMMAND_NS, DISPATCH_NS, WALK_NS = 2, 1, 50
NUM_RANDOM = 60  # fewer than may be under way
NUM_PAGES = 6
PLACES = 32  # of a page, 64 bytes each


# -- ME1 -----------------------------------------------------------------------------------------


def _load_pages(x: Any, pages: Sequence[int], elements: int, tl: Any) -> None:
    for place, page in enumerate(pages):
        tl.load(x + page * elements + 32 * (place % PLACES) + tl.arange(0, 32))


def departures_ns(pages: Sequence[int], kind: EngineKind) -> list[Fraction]:
    """When the loads of a kernel leave the DMA, one for each page that it names, in its order."""
    machine = machine_named(MACHINE)
    workspace = Workspace(machine, kind)
    page_bytes = machine.spec.pe.mmu.page_bytes
    array = workspace.reserve((NUM_PAGES * page_bytes // 2,), float16, [PE])
    engine = workspace.device.engine
    engine.set_trace(True)
    workspace.launch(_load_pages, array, tuple(pages), page_bytes // 2, grid=(1,), pes=[PE])
    dma, controller = (machine.node_of(node, PE) for node in (NodeKind.PE_DMA, NodeKind.HBM_CTRL))
    first_link, _ = machine.route(dma, controller, Traffic.REQUEST, PE.pe)[0]
    server = workspace.device.links[first_link]
    packets = sorted((each.packet_id, each.ready_ps) for each in engine.take_trace()
                     if each.server == server)  # fmt: skip
    return [Fraction(ready_ps, PS_PER_NS) for _, ready_ps in packets]


def expected_ns(pages: Sequence[int]) -> list[int]:
    """A page is there a walk after the issue of the first command that names it."""
    issued = [COMMAND_NS * (place + 1) for place in range(len(pages))]
    there = [issued[pages.index(page)] + WALK_NS for page in pages]
    return [max(pair) + DISPATCH_NS for pair in zip(issued, there, strict=True)]


def check_walk(kind: EngineKind, *, pages: Sequence[int], expected: int) -> Finding:
    """The last of some loads, in ns after the start of the kernel."""
    return exact(expected, departures_ns(pages, kind)[-1], "ns")


def check_random_walks(kind: EngineKind) -> Finding:
    """Loads from pages in any order: how many leave at another time than the law says."""
    pages = np.random.default_rng(SEED).integers(0, NUM_PAGES, NUM_RANDOM).tolist()
    found, expected = departures_ns(pages, kind), expected_ns(pages)
    wrong = sum(one != other for one, other in zip(found, expected, strict=True))
    return exact(0, wrong, "loads")


# -- ME2, ME3 ------------------------------------------------------------------------------------


def _end_ns(device: Device, trips: Sequence[int], num_bytes: int) -> Fraction:
    """Of exchanges that begin together, the end of the last."""
    graph = TaskGraph()
    for place, trip in enumerate(trips):
        graph.exchange(trip, num_bytes, tag=place * num_bytes)
    return Fraction(finish(device.engine, graph), PS_PER_NS)


def check_own_tcm(kind: EngineKind, *, access: Access) -> Finding:
    """64 KiB through a port of 512 GB/s, and one flit beside it."""
    device = build_device(machine_named(MACHINE), kind)
    trip = device.pe_access(PE, PE, access, memory=MemoryKind.TCM)
    return exact(Fraction("128.125"), _end_ns(device, [trip], 2**16), "ns")


def check_channels(kind: EngineKind) -> Finding:
    """Two reads of an SRAM on a channel each, both with a window of one packet.

    A packet of one is served behind that of the other, 1 KiB at 128 GB/s later; from then on they
    meet no more.
    """
    overrides = ("pe.dma.read_channels=2", "pe.dma.in_flight_bytes=1 KiB")
    ends_ns = []
    for count in (1, 2):
        device = build_device(machine_named(MACHINE, *overrides), kind)
        trips = [
            device.pe_access(PE, PE, Access.READ, channel, MemoryKind.SRAM)
            for channel in range(count)
        ]
        ends_ns.append(_end_ns(device, trips, 8192))
    return exact(8, ends_ns[1] - ends_ns[0], "ns")


def oracles() -> Iterator[Row]:
    for name, pages, expected in (
        ("a load that walks", (0,), 53),
        ("a load of a page that is walked for", (0, 0, 0, 0), 53),
        ("a second walk beside the first", (0, 1), 55),
        ("a load after the walk", (*[0] * 26, 0), 55),
    ):
        yield f"ME1 {name}: sets out", partial(check_walk, pages=pages, expected=expected)
    yield f"ME1 {NUM_RANDOM} loads from {NUM_PAGES} pages: wrong departures", check_random_walks
    for access in Access:
        yield f"ME2 {access.value} of 64 KiB of the own TCM", partial(check_own_tcm, access=access)
    yield "ME3 two reads on a channel each: the second ends later", check_channels
