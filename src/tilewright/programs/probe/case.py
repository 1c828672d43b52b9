"""The cases of the probe: who reads or writes how much where, on any machine that has the parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tilewright.device.dma import Access, num_channels
from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord, PeCoord, Side, SipCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic

KIB, MIB = 2**10, 2**20
SIZES = (256, 4 * KIB, 64 * KIB, MIB)
SMALLEST_PIECE = 64  # bytes that a flow of a spread access has at least

READ, WRITE = Access.READ, Access.WRITE


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes that an issuer moves between itself and one slice; the host is the issuer None."""

    issuer: PeCoord | None
    target: PeCoord
    access: Access
    num_bytes: int
    address: int = 0
    channel: int = 0  # of the issuer's DMA


class Unfit(Exception):  # noqa: N818  # a machine without the part is no error of anybody
    """Why a machine cannot have a case."""


Build = Callable[[Machine, int], list[Flow]]


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """A name, what it shows, its flows for a size in bytes per issuer, and its usual sizes."""

    name: str
    description: str
    build: Build

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes per issuer, unless somebody asks for others."""
        return (*SIZES, 16 * MIB) if self.name == "local_all" else SIZES


def issuers_of(flows: list[Flow]) -> list[PeCoord | None]:
    """In the order of their first flow; the position is the owner's number on the engine."""
    return list(dict.fromkeys(flow.issuer for flow in flows))


def deal_to_channels(machine: Machine, flows: Iterable[Flow]) -> Iterator[Flow]:
    """Each flow in as many parts as its issuer has channels, as even as whole packets allow."""
    packet_bytes = machine.spec.packet_bytes
    for flow in flows:
        owner = SipCoord(flow.target.sip) if flow.issuer is None else flow.issuer
        packets = -(-flow.num_bytes // packet_bytes)
        parts = min(num_channels(machine, owner, flow.access), packets)
        for channel in range(parts):
            start = packets * channel // parts * packet_bytes
            end = min(packets * (channel + 1) // parts * packet_bytes, flow.num_bytes)
            address = flow.address + start
            yield replace(flow, num_bytes=end - start, address=address, channel=channel)


def _links_between(machine: Machine, source: int, cube: CubeCoord, pe: int = 0) -> int:
    target = machine.node_of(NodeKind.HBM_CTRL, PeCoord(cube.sip, cube.cube, pe))
    return len(machine.route(source, target, Traffic.REQUEST, pe))


def _cubes(machine: Machine) -> list[CubeCoord]:
    return [cube for cube in machine.grid.cubes() if cube.sip == 0]


def _pes(machine: Machine, cube: CubeCoord) -> list[PeCoord]:
    return [PeCoord(cube.sip, cube.cube, pe) for pe in range(machine.spec.cube.pes)]


def _sip_pes(machine: Machine) -> list[PeCoord]:
    return [pe for cube in _cubes(machine) for pe in _pes(machine, cube)]


def _host(access: Access, *, is_far: bool) -> Build:
    def build(machine: Machine, num_bytes: int) -> list[Flow]:
        host = machine.host
        distances = [(_links_between(machine, host, cube), cube) for cube in _cubes(machine)]
        _, cube = max(distances) if is_far else min(distances)
        return [Flow(None, PeCoord(cube.sip, cube.cube, 0), access, num_bytes)]

    return build


def _pe(target: Callable[[Machine], PeCoord]) -> Build:
    """Return a case of one PE that reads from a slice."""

    def build(machine: Machine, num_bytes: int) -> list[Flow]:
        return [Flow(PeCoord(0, 0, 0), target(machine), READ, num_bytes)]

    return build


def _same_cube(machine: Machine) -> PeCoord:
    others = _pes(machine, CubeCoord(0, 0))[1:]
    if not others:
        raise Unfit("it has one PE a cube")
    source = machine.node_of(NodeKind.PE_DMA, PeCoord(0, 0, 0))
    return max(others, key=lambda pe: _links_between(machine, source, CubeCoord(0, 0), pe.pe))


def _neighbour(machine: Machine) -> CubeCoord:
    for side in (Side.EAST, Side.SOUTH):
        cube = machine.grid.neighbour(CubeCoord(0, 0), side)
        if cube is not None:
            return cube
    raise Unfit("it has one cube a SIP")


def _far_cube(machine: Machine) -> PeCoord:
    _neighbour(machine)
    source = machine.node_of(NodeKind.PE_DMA, PeCoord(0, 0, 0))
    _, cube = max((_links_between(machine, source, cube), cube) for cube in _cubes(machine)[1:])
    return PeCoord(0, cube.cube, 0)


def _other_sip(machine: Machine) -> PeCoord:
    if machine.grid.num_sips < 2:
        raise Unfit("it has one SIP")
    return PeCoord(1, 0, 0)


def _hot(count: int) -> Build:
    def build(machine: Machine, num_bytes: int) -> list[Flow]:
        pes = _pes(machine, CubeCoord(0, 0))
        if len(pes) < count:
            raise Unfit(f"it has {len(pes)} PE{'s' * (len(pes) > 1)} a cube, not {count}")
        target = PeCoord(0, 0, 0)
        return [
            Flow(pe, target, READ, num_bytes, place * num_bytes)
            for place, pe in enumerate(pes[-count:])
        ]

    return build


def _east_port(machine: Machine, num_bytes: int) -> list[Flow]:
    east = machine.grid.neighbour(CubeCoord(0, 0), Side.EAST)
    if east is None:
        raise Unfit("its cubes have no neighbour in the east")
    return [
        Flow(pe, PeCoord(0, east.cube, pe.pe), WRITE, num_bytes)
        for pe in _pes(machine, CubeCoord(0, 0))[:8]
    ]


def _local_all(machine: Machine, num_bytes: int) -> list[Flow]:
    return [Flow(pe, pe, READ, num_bytes) for pe in _sip_pes(machine)]


def _slice_all(machine: Machine, num_bytes: int) -> list[Flow]:
    target = PeCoord(0, 0, 0)
    pes = _sip_pes(machine)
    return [Flow(pe, target, READ, num_bytes, n * num_bytes) for n, pe in enumerate(pes)]


def _all_to_all(machine: Machine, num_bytes: int) -> list[Flow]:
    """Each PE reads an equal part from its like in every other cube, the next one first."""
    cubes = _cubes(machine)
    _neighbour(machine)
    flows = []
    for place, cube in enumerate(cubes):
        others = cubes[place + 1 :] + cubes[:place]
        for pe in _pes(machine, cube):
            for turn, (other, size) in enumerate(_dealt(num_bytes, others)):
                target = PeCoord(other.sip, other.cube, pe.pe)
                flows.append(Flow(pe, target, READ, size, turn * num_bytes))
    return flows


def _dealt(num_bytes: int, cubes: list[CubeCoord]) -> Iterator[tuple[CubeCoord, int]]:
    size = max(SMALLEST_PIECE, -(-num_bytes // (len(cubes) * SMALLEST_PIECE)) * SMALLEST_PIECE)
    for cube in cubes:
        part = min(size, num_bytes)
        if part:
            yield cube, part
        num_bytes -= part


def _bisection(machine: Machine, num_bytes: int) -> list[Flow]:
    """Every PE reads from its mirror image in the other half of the SIP."""
    _neighbour(machine)
    columns, rows = machine.spec.sip.columns, machine.spec.sip.rows
    flows = []
    for cube in _cubes(machine):
        column, row = machine.grid.cell(cube)
        mirror = (columns - 1 - column, row) if columns > 1 else (column, rows - 1 - row)
        other = machine.grid.cube_in_cell(0, *mirror)
        if other != cube:
            for pe in _pes(machine, cube):
                flows.append(Flow(pe, PeCoord(0, other.cube, pe.pe), READ, num_bytes))
    return flows


def _build_cases() -> Mapping[str, ProbeCase]:
    near, far = {"is_far": False}, {"is_far": True}
    cases = (
        ProbeCase("host_write_near", "the host writes to the nearest cube", _host(WRITE, **near)),
        ProbeCase("host_write_far", "the host writes to the farthest cube", _host(WRITE, **far)),
        ProbeCase("host_read_near", "the host reads from the nearest cube", _host(READ, **near)),
        ProbeCase("host_read_far", "the host reads from the farthest cube", _host(READ, **far)),
        ProbeCase("pe_local", "a PE reads from its own slice", _pe(lambda _: PeCoord(0, 0, 0))),
        ProbeCase(
            "pe_same_cube", "a PE reads from the farthest slice of its cube", _pe(_same_cube)
        ),
        ProbeCase(
            "pe_next_cube",
            "a PE reads from the next cube",
            _pe(lambda machine: PeCoord(0, _neighbour(machine).cube, 0)),
        ),
        ProbeCase("pe_far_cube", "a PE reads from the farthest cube of its SIP", _pe(_far_cube)),
        ProbeCase("pe_other_sip", "a PE reads from another SIP", _pe(_other_sip)),
        ProbeCase("hot_1", "one PE reads from one controller of its cube", _hot(1)),
        ProbeCase("hot_2", "two PEs read from one controller", _hot(2)),
        ProbeCase("hot_3", "three PEs read from one controller", _hot(3)),
        ProbeCase("hot_8", "eight PEs read from one controller", _hot(8)),
        ProbeCase("east_port_8", "the PEs of a cube write to the east neighbour", _east_port),
        ProbeCase("local_all", "all PEs of a SIP read from their own slices", _local_all),
        ProbeCase("slice_all", "all PEs of a SIP read from one slice", _slice_all),
        ProbeCase("cubes_all_to_all", "all PEs of a SIP read from all other cubes", _all_to_all),
        ProbeCase("bisection", "all PEs of a SIP read from the other half", _bisection),
    )
    return MappingProxyType({case.name: case for case in cases})


PROBE_CASES = _build_cases()
