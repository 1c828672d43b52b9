"""Where the time of a case went: along the critical path of the issuer that ends last.

The path goes back from the last answer through that packet's hops to the moment it set out; it set
out because another packet had come back, and so on to time 0. All parts are integers and add up.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.device.block import PacketBlock
from tilewright.engine import PacketView, TraceRecord
from tilewright.engine.core import OWNER_SHIFT
from tilewright.engine.dram.spec import BankedRefreshSpec
from tilewright.engine.statistics import MemoryRecord
from tilewright.errors import InternalError
from tilewright.machine.node import Link

PARTS = ("overhead", "wire", "serialisation", "queueing", "memory", "refresh")


@dataclass(frozen=True, slots=True)
class PathInput:
    """One owner's trace, and what its servers are."""

    trace: Sequence[TraceRecord]
    memory_trace: Sequence[MemoryRecord]
    links: Mapping[int, Link]  # by server
    shared_memories: Collection[int]  # servers that several owners use
    least_access_ps: int  # of an access that finds its banks closed
    is_alone: bool  # no other issuer: whatever a packet waits for is its issuer's own
    travels_ps: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Behind links of the user's, by server and packet."""
    refreshes: Mapping[int, BankedRefreshSpec] = field(default_factory=dict)
    """By memory: of all its banks at a time."""


@dataclass(slots=True)
class _Packets:
    """The trace by packet and by server."""

    hops: dict[int, list[TraceRecord]] = field(default_factory=lambda: defaultdict(list))
    accesses: dict[int, MemoryRecord] = field(default_factory=dict)
    holds: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    back_ps: dict[int, int] = field(default_factory=dict)
    closed_ps: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))


def break_down(found: PathInput) -> dict[str, int]:
    """Picoseconds by part; their sum is the time of the last answer."""
    packets = _sorted_out(found)
    parts = dict.fromkeys(PARTS, 0)
    returned = {
        back_ps: packet for packet, back_ps in sorted(packets.back_ps.items(), reverse=True)
    }
    at_ps = max(packets.back_ps.values())
    while at_ps > 0:
        if at_ps not in returned:
            what = f"a packet that sets out at {at_ps} ps, when none came back"
            raise InternalError("probe path", what, "a reason for its start", "report this")
        at_ps = _add_packet(parts, found, packets, returned[at_ps])
    return parts


def _sorted_out(found: PathInput) -> _Packets:
    packets = _Packets()
    for record in found.trace:
        packets.hops[record.packet_id].append(record)
        packets.holds[record.server].append((record.start_ps, record.tail_ps, record.packet_id))
    for access in found.memory_trace:
        packets.accesses[access.packet_id] = access
    for holds in packets.holds.values():
        holds.sort()
    for packet, hops in packets.hops.items():
        last = hops[-1]
        latency_ps = found.links[last.server].latency_ps
        travel_ps = found.travels_ps.get(last.server, {}).get(packet, latency_ps)
        packets.back_ps[packet] = last.tail_ps + travel_ps
        for hop in hops:
            met = packets.accesses.get(packet)
            if met is not None and met.refresh_ps and hop.server in found.refreshes:
                # a refresh closed the memory since it was due, as this access tells
                since_ps = found.refreshes[hop.server].last_due_ps(met.done_ps)
                until_ps = max(since_ps, hop.start_ps) + met.refresh_ps
                closed_ps = packets.closed_ps[hop.server]
                closed_ps[since_ps] = max(closed_ps.get(since_ps, 0), until_ps)
    return packets


def _add_packet(parts: dict[str, int], found: PathInput, packets: _Packets, packet: int) -> int:
    """Add what a packet's way took; return when it set out."""
    hops = packets.hops[packet]
    for hop, following in zip(hops, [*hops[1:], None], strict=True):
        if hop.server not in found.links:
            if packet in packets.accesses:
                _add_access(parts, found, packets, hop)
            elif following is not None:  # a memory of the user's, which tells no more than this
                parts["queueing"] += hop.start_ps - hop.ready_ps
                parts["memory"] += following.ready_ps - hop.start_ps
            continue
        end_ps = packets.back_ps[packet] if following is None else following.ready_ps
        link = found.links[hop.server]
        own_ps = hop.start_ps - hop.ready_ps
        if not found.is_alone:
            own_ps = _held_by_own(packets.holds[hop.server], hop)
        parts["serialisation"] += own_ps
        parts["queueing"] += hop.start_ps - hop.ready_ps - own_ps
        moving_ps = end_ps - hop.start_ps
        node_ps, travel_ps = link.node_ps, link.wire_ps
        if hop.server in found.travels_ps:
            node_ps, travel_ps = 0, found.travels_ps[hop.server][packet]
        overhead_ps = min(node_ps, moving_ps)
        wire_ps = min(travel_ps, moving_ps - overhead_ps)
        parts["overhead"] += overhead_ps
        parts["wire"] += wire_ps
        parts["serialisation"] += moving_ps - overhead_ps - wire_ps
    return hops[0].ready_ps


def _add_access(
    parts: dict[str, int], found: PathInput, packets: _Packets, hop: TraceRecord
) -> None:
    """From being ready in front of a memory to its data; a shared one makes others wait."""
    access = packets.accesses[hop.packet_id]
    total_ps = access.done_ps - hop.ready_ps
    before_ps = sum(
        max(0, min(until_ps, hop.start_ps) - max(since_ps, hop.ready_ps))
        for since_ps, until_ps in packets.closed_ps[hop.server].items()
    )
    refresh_ps = min(before_ps + access.refresh_ps, total_ps)
    memory_ps = total_ps - refresh_ps
    if hop.server in found.shared_memories:
        memory_ps = min(memory_ps, found.least_access_ps)
    parts["refresh"] += refresh_ps
    parts["memory"] += memory_ps
    parts["queueing"] += total_ps - refresh_ps - memory_ps


def _held_by_own(holds: Sequence[tuple[int, int, int]], hop: TraceRecord) -> int:
    """Of the time a packet waited, what its issuer's other packets held the server."""
    own_ps = 0
    place = bisect_right(holds, (hop.start_ps, -1, -1)) - 1
    while place >= 0:
        start_ps, tail_ps, packet = holds[place]
        if tail_ps <= hop.ready_ps:
            break
        if packet != hop.packet_id:
            own_ps += min(tail_ps, hop.start_ps) - max(start_ps, hop.ready_ps)
        place -= 1
    return own_ps


# -- links of the user's, which alone know how long a packet travels behind them -------------------

Heard = dict[int, tuple[int, int]]
"""What a block returned, hold and latency, by packet."""


@dataclass(frozen=True, slots=True)
class LinkWatch:
    """Keeps what the user's links say about the packets of some owners; it changes nothing."""

    owners: range
    heard: dict[int, Heard] = field(default_factory=dict)  # by link

    def around(self, link_id: int, block: PacketBlock) -> PacketBlock:
        return _Watched(block, self.owners, self.heard.setdefault(link_id, {}))

    def latencies_ps(self, link_id: int) -> dict[int, int]:
        """By packet; empty for a link of the package."""
        heard = self.heard.get(link_id, {})
        return {packet: latency_ps for packet, (_, latency_ps) in heard.items()}


@dataclass(frozen=True, slots=True)
class _Watched:
    block: PacketBlock
    owners: range
    heard: Heard

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        answer = self.block.service(packet, now_ps)  # nonsense is for the engine to refuse
        if packet.packet_id >> OWNER_SHIFT in self.owners:
            self.heard[packet.packet_id] = answer
        return answer
