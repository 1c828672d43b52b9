"""PCIe, UCIe and chains of links: LI1 to LI6, alone and inside the default machine."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access
from tilewright.engine import EngineKind, EngineSpec, ServerSpec, TaskGraph
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import LinkKind, reverse_link
from tilewright.machine.spec import PcieSpec
from tilewright.machine.spec.network import pcie_bytes_per_us, pcie_payload_rate, pcie_raw_rate
from tilewright.validation.engine_run import finish, machine_named, transfer_ps
from tilewright.validation.finding import Finding, Row, exact, gb_per_s, printed, ramp

GB = "GB/s"
GB_PER_US = 1_000  # bytes per microsecond of one GB/s
STREAM_BYTES = 4 * 2**20
FLIT_BYTES = 64
UCIE_FLIT_BYTES = 256
RATE = 256_000  # of the links in chains: a flit of 64 bytes takes 250 ps
FLIT_PS = 250
LATENCY_PS = 1_700
QUIET = ("ahbm", "cube.hbm.refresh.kind=none")  # only links are looked at


def check_stream(
    kind: EngineKind, *, bytes_per_us: int, figure: str, flit_bytes: int = FLIT_BYTES
) -> Finding:
    """What a link carries in the long run."""
    link, spec = ServerSpec("link", bytes_per_us), EngineSpec(flit_bytes)
    taken_ps = transfer_ps(kind, [link], STREAM_BYTES, spec)
    return ramp(Fraction(figure), gb_per_s(STREAM_BYTES, taken_ps), GB)


def check_figure(_kind: EngineKind, *, rate: Fraction, figure: str) -> Finding:
    """The closed form itself, as it is printed."""
    return printed(figure, rate / GB_PER_US, GB)


def check_chain(kind: EngineKind, *, hops: int, flits: int, reassemble: bool) -> Finding:
    """One packet through equal links that take it in whole, or pass it on as it comes."""
    links = [
        ServerSpec(f"link{hop}", RATE, LATENCY_PS, reassemble=reassemble) for hop in range(hops)
    ]
    found_ps = transfer_ps(kind, links, flits * FLIT_BYTES, EngineSpec(FLIT_BYTES, flits))
    whole_ps = hops * (LATENCY_PS + flits * FLIT_PS)
    flowing_ps = hops * (LATENCY_PS + FLIT_PS) + (flits - 1) * FLIT_PS
    return exact(whole_ps if reassemble else flowing_ps, found_ps, "ps")


# -- inside a machine ----------------------------------------------------------------------------


def _rate_of(device: Device, trip: int) -> Fraction:
    """GB/s of the second of two equal accesses, one after the other."""
    graph = TaskGraph()
    for number in range(2):
        graph.exchange(trip, STREAM_BYTES, effect=number)
    finish(device.engine, graph)
    (first_ps, _), (second_ps, _) = device.engine.take_effects()
    return gb_per_s(STREAM_BYTES, second_ps - first_ps)


def check_host_copy(kind: EngineKind, *, access: Access, figure: str) -> Finding:
    """The host and a slice of the memory: the slowest link is PCIe."""
    device = build_device(machine_named(*QUIET), kind)
    trip = device.host_access(PeCoord(0, 0, 0), access)
    return ramp(Fraction(figure), _rate_of(device, trip), GB)


def check_next_cube(kind: EngineKind, *, access: Access, figure: str) -> Finding:
    """A PE and a slice of the next cube: the slowest link is one connection of UCIe."""
    device = build_device(machine_named(*QUIET), kind)
    trip = device.pe_access(PeCoord(0, 0, 0), PeCoord(0, 1, 0), access)
    return ramp(Fraction(figure), _rate_of(device, trip), GB)


def check_duplex(kind: EngineKind, *, wire: LinkKind) -> Finding:
    """Ends of two opposite streams that differ from those of each alone."""
    link_id = next(id_ for id_, link in enumerate(machine_named(*QUIET).links) if link.kind is wire)
    pair = (link_id, reverse_link(link_id))
    together_ps = _ends_ps(pair, kind)
    alone_ps = [_ends_ps((each,), kind)[0] for each in pair]
    late_ps = [abs(one - other) for one, other in zip(together_ps, alone_ps, strict=True)]
    return exact(0, sum(late_ps), "ps")


def _ends_ps(link_ids: tuple[int, ...], kind: EngineKind) -> list[int]:
    device = build_device(machine_named(*QUIET), kind, links=link_ids)
    graph = TaskGraph()
    for number, link_id in enumerate(link_ids):
        route = device.engine.add_route([device.links[link_id]])
        graph.transfer(route, STREAM_BYTES, effect=number)
    finish(device.engine, graph)
    return [end_ps for end_ps, _ in sorted(device.engine.take_effects(), key=lambda end: end[1])]


# -- the table -----------------------------------------------------------------------------------

RAW = {1: "4.0", 2: "8.0", 3: "15.754", 4: "31.508", 5: "63.015"}  # PCIe x16, by generation
PAYLOAD = {  # PCIe 5.0 x16: by most payload and overhead of a packet
    128: {20: "54.50", 24: "53.07", 28: "51.70"},
    256: {20: "58.45", 24: "57.61", 28: "56.80"},
    512: {20: "60.65", 24: "60.19", 28: "59.75"},
}
MODULES = {16: "64", 64: "256"}  # UCIe at 32 GT/s, by lanes


def _link(
    name: str, rate: Fraction, figure: str, bytes_per_us: int, flit_bytes: int = FLIT_BYTES
) -> Iterator[Row]:
    """Yield what a link carries on paper, and a stream over it."""
    yield f"{name}, closed form", partial(check_figure, rate=rate, figure=figure)
    check = partial(check_stream, bytes_per_us=bytes_per_us, figure=figure, flit_bytes=flit_bytes)
    yield name, check


def _pcie() -> Iterator[Row]:
    rate_of = partial(pcie_bytes_per_us, flit_bytes=FLIT_BYTES)
    for generation, figure in RAW.items():
        spec = PcieSpec(generation=generation, overhead_bytes=0)
        name = f"LI1 PCIe {generation}.0 x16 raw"
        yield from _link(name, pcie_raw_rate(spec), figure, rate_of(spec))
    for payload, figures in PAYLOAD.items():
        for overhead, figure in figures.items():
            spec = PcieSpec(payload_bytes=payload, overhead_bytes=overhead)
            name = f"LI2 PCIe 5.0 x16, payload {payload}, overhead {overhead}"
            yield from _link(name, pcie_payload_rate(spec), figure, rate_of(spec))
    for access in Access:
        check = partial(check_host_copy, access=access, figure=PAYLOAD[256][24])
        yield f"LI2 host {access.value} of 4 MiB in the machine", check


def _ucie() -> Iterator[Row]:
    for lanes, figure in MODULES.items():
        rate = Fraction(lanes * 32_000, 8)  # raw bytes a microsecond: a bit a lane and transfer
        name = f"LI3 UCIe x{lanes} at 32 GT/s"
        yield from _link(name, rate, figure, int(rate), UCIE_FLIT_BYTES)
    for access in Access:
        check = partial(check_next_cube, access=access, figure="128")
        yield f"LI3 {access.value} of 4 MiB over one connection in the machine", check


def _chains() -> Iterator[Row]:
    for hops, flits in ((1, 1), (3, 16), (7, 64)):
        for law, what, reassemble in (("LI4", "whole", True), ("LI5", "flowing", False)):
            name = f"{law} {flits} flits over {hops} links, {what}"
            yield name, partial(check_chain, hops=hops, flits=flits, reassemble=reassemble)
    for wire in (LinkKind.NETWORK, LinkKind.DIE_TO_DIE, LinkKind.PCIE, LinkKind.FABRIC):
        name = f"LI6 both ways at once, {wire.value.replace('_', ' ')}"
        yield name, partial(check_duplex, wire=wire)


def oracles() -> Iterator[Row]:
    yield from (*_pcie(), *_ucie(), *_chains())
