"""A lower bound of a case from the spec alone: no queueing, no refresh.

The greatest of: each flow's first packet on an idle machine; each link's and each slice's work,
from the earliest moment that anything can reach it to the least way home behind it; and the round
trips that a DMA channel's window forces. A user's memory may be as fast as it likes, and a packet
may travel behind a user's link in no time; its rate holds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.device.dma import Access, Channel, window_packets
from tilewright.device.least_time import least_link, open_access_ps
from tilewright.device.memory import first_access_ps
from tilewright.machine.build import Machine
from tilewright.machine.coords import SipCoord
from tilewright.machine.node import Link, NodeKind
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us
from tilewright.programs.probe.case import Flow
from tilewright.units import PS_PER_US, flit_ps, num_flits


@dataclass(frozen=True, slots=True)
class FlowPath:
    """A flow with the links that it takes."""

    flow: Flow
    out: tuple[int, ...]
    back: tuple[int, ...]

    @property
    def links(self) -> tuple[int, ...]:
        return self.out + self.back


@dataclass(frozen=True, slots=True)
class _Use:
    """A flow at a resource: its work, when it can be there first, its least way home."""

    work_ps: int
    reach_ps: int
    home_ps: int


def path_of(machine: Machine, flow: Flow) -> FlowPath:
    target = machine.node_of(NodeKind.HBM_CTRL, flow.target)
    if flow.issuer is None:
        source, spread = machine.host, flow.target.pe
    else:
        source, spread = machine.node_of(NodeKind.PE_DMA, flow.issuer), flow.issuer.pe
    out = machine.route(source, target, Traffic.REQUEST, spread)
    back = machine.route(target, source, Traffic.RESPONSE, spread)
    return FlowPath(flow, tuple(link for link, _ in out), tuple(link for link, _ in back))


def bound_ps(machine: Machine, paths: Sequence[FlowPath]) -> int:
    """No run of these flows can end earlier."""
    uses: dict[object, list[_Use]] = defaultdict(list)
    bounds = [0]
    flows = Counter(path.flow.target for path in paths)
    for path in paths:
        cost = _Cost(machine, path, is_shared=flows[path.flow.target] > 1)
        bounds += (cost.first_packet_ps(), cost.window_ps())
        for resource, use in cost.uses():
            uses[resource].append(use)
    bounds += (
        min(use.reach_ps for use in shared)
        + sum(use.work_ps for use in shared)
        + min(use.home_ps for use in shared)
        for shared in uses.values()
    )
    return max(bounds)


class _Cost:
    """What one flow must cost, part by part."""

    def __init__(self, machine: Machine, path: FlowPath, *, is_shared: bool) -> None:
        self._is_shared = is_shared  # so that another flow may have opened its row
        self._spec = machine.spec
        self._machine = machine
        self._flow = path.flow
        self._path = path
        self._out = [least_link(machine, link) for link in path.out]
        self._back = [least_link(machine, link) for link in path.back]
        self._writes = path.flow.access is Access.WRITE
        self._hit_ps = open_access_ps(self._spec.cube.hbm, is_write=self._writes)

    def first_packet_ps(self) -> int:
        """The first packet alone; exact on an idle machine."""
        size = min(self._flow.num_bytes, self._spec.packet_bytes)
        return self._trip_ps(size, self._access_ps(size))

    def window_ps(self) -> int:
        """Packet ``i + window`` sets out when so many are back; the last one has its own trip."""
        packets = -(-self._flow.num_bytes // self._spec.packet_bytes)
        flow = self._flow
        owner = SipCoord(flow.target.sip) if flow.issuer is None else flow.issuer
        window = window_packets(self._machine, Channel(owner, flow.access, flow.channel))
        rounds = (packets - 1) // window
        rest_bytes = flow.num_bytes - (packets - 1) * self._spec.packet_bytes
        round_ps = self._trip_ps(self._spec.packet_bytes, self._hit_ps)
        return rounds * round_ps + self._trip_ps(rest_bytes, self._hit_ps)

    def uses(self) -> Iterable[tuple[object, _Use]]:
        data = num_flits(self._flow.num_bytes, flit_bytes=self._spec.flit_bytes)
        packets = -(-self._flow.num_bytes // self._spec.packet_bytes)
        out_flits, back_flits = (data, packets) if self._writes else (packets, data)
        there_ps, home_ps = sum(self._steps(self._out)), sum(self._steps(self._back))
        access_ps = self._access_ps(1)
        behind_ps = self._hit_ps + home_ps
        yield from self._leg_uses(self._path.out, self._out, out_flits, 0, behind_ps)
        reach_ps = there_ps + access_ps
        yield from self._leg_uses(self._path.back, self._back, back_flits, reach_ps, 0)
        if self._spec.cube.hbm.impl is not None:
            return
        burst_ps = self._spec.cube.hbm.burst_ps
        data_ps = self._flow.num_bytes * PS_PER_US // slice_bytes_per_us(self._spec)
        yield self._flow.target, _Use(data_ps, max(0, reach_ps - burst_ps), home_ps)

    def _leg_uses(
        self, ids: Sequence[int], links: Sequence[Link], flits: int, reach_ps: int, behind_ps: int
    ) -> Iterable[tuple[object, _Use]]:
        """The links of one leg; ``behind_ps`` is the least way home from its end."""
        steps = self._steps(links)
        home_ps = behind_ps + sum(steps)
        for link_id, link, step_ps in zip(ids, links, steps, strict=True):
            home_ps -= step_ps
            flit_time_ps = step_ps - link.latency_ps
            yield link_id, _Use(flits * flit_time_ps, reach_ps, link.latency_ps + home_ps)
            reach_ps += step_ps

    def _trip_ps(self, num_bytes: int, access_ps: int) -> int:
        flits = num_flits(num_bytes, flit_bytes=self._spec.flit_bytes)
        out_flits, back_flits = (flits, 1) if self._writes else (1, flits)
        size = self._spec.flit_bytes
        out_ps = zero_load_ps(self._out, num_flits=out_flits, flit_bytes=size)
        return out_ps + access_ps + zero_load_ps(self._back, num_flits=back_flits, flit_bytes=size)

    def _access_ps(self, num_bytes: int) -> int:
        if self._is_shared or self._spec.cube.hbm.impl is not None:
            return self._hit_ps
        return first_access_ps(self._spec.cube.hbm, num_bytes, is_write=self._writes)

    def _steps(self, links: Iterable[Link]) -> list[int]:
        """What a flit needs at least on each link."""
        size = self._spec.flit_bytes
        return [
            flit_ps(flit_bytes=size, bytes_per_us=link.bytes_per_us) + link.latency_ps
            for link in links
        ]
