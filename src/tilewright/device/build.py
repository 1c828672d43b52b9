"""From a machine to its blocks on an engine.

ADR 0005: a link is one server, and the node it leads to is a latency and an input buffer. So
routers, connections, the IO crossbar, the PCIe endpoint and the switch have no server of their own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.device.block import PacketBlock, build_service
from tilewright.device.dma import Access, Channel, check_channel, window_packets
from tilewright.device.memory import add_slice, add_sram
from tilewright.engine import (
    AUTO,
    Arbitration,
    Auto,
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    build_engine,
)
from tilewright.errors import SpecError
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import Link, LinkKind, NodeKind, place_name
from tilewright.machine.route import Route, Traffic
from tilewright.machine.spec import BlockSpec, TcmSpec
from tilewright.memory.address import MemoryKind

Around = Callable[[int, PacketBlock], PacketBlock]
"""From a link and the user's block on it to what stands in its place, to listen for instance."""


def link_server(machine: Machine, link_id: int, around: Around | None = None) -> ServerSpec:
    """The server of a link, named by the nodes that it joins.

    A packet of F flits that finds it free holds it for F flits of ``ceil(flit_bytes / rate)`` each;
    its head arrives one flit and ``wire_ps + node_ps`` after the start. Inputs take turns. A packet
    starts only when it fits into the buffer behind; its credits come back ``credit_ps`` after it
    has left that buffer. A link that leaves a rate boundary takes a packet in whole first.

    A block of the user's decides hold and latency instead; ``around`` may put another in its place.
    """
    link = machine.links[link_id]
    name = machine.link_name(link_id)
    service = build_service(name, link_block(machine, link))
    if service is not None and around is not None:
        service = around(link_id, service)
    return ServerSpec(
        name,
        bytes_per_us=link.bytes_per_us,
        latency_ps=link.latency_ps,
        buffer_flits=link.buffer_bytes // machine.spec.flit_bytes,
        credit_ps=link.credit_ps,
        arbitration=Arbitration.ROUND_ROBIN,
        reassemble=link.reassemble,
        service=service,
    )


def link_block(machine: Machine, link: Link) -> BlockSpec:
    """The block of the spec whose ``impl`` replaces this link's behaviour."""
    spec = machine.spec
    ends = machine.nodes[link.src].kind, machine.nodes[link.dst].kind
    if spec.sip.io is not None and NodeKind.IO_NOC in ends:
        return spec.sip.io
    match link.kind:
        case LinkKind.NETWORK | LinkKind.ATTACHMENT | LinkKind.CONNECTION:
            return spec.cube.noc
        case LinkKind.DIE_TO_DIE:
            return spec.cube.noc if spec.cube.ucie is None else spec.cube.ucie
        case LinkKind.PCIE:
            return spec.host.pcie
        case LinkKind.FABRIC | LinkKind.SIP_PORT:
            return spec.fabric


class TcmServers(NamedTuple):
    """Both ports of a TCM, and what passes beside them."""

    read: int
    write: int
    turn: int  # the way of a request of the PE's own DMA, or of the answer to it


def tcm_servers(name: str, spec: TcmSpec) -> tuple[ServerSpec, ServerSpec, ServerSpec]:
    """Return the read port, the write port, and the server beside them, as ``TcmServers`` has them.

    An access holds its port for ``ceil(bytes / rate of the port)``, rounded up to a picosecond once
    per access. Reads wait for reads and writes for writes, never for each other. Commands of the PE
    hold the ports; packets of a DMA cross them, each as a whole, since the links in front of them
    are slower.
    """
    return (
        ServerSpec(f"{name}.read", spec.read_bytes_per_us, reassemble=True),
        ServerSpec(f"{name}.write", spec.write_bytes_per_us, reassemble=True),
        ServerSpec(f"{name}.turn", spec.read_bytes_per_us),
    )


@dataclass(frozen=True, slots=True)
class Device:
    """A machine on an engine."""

    machine: Machine
    engine: Engine = field(repr=False)
    links: dict[int, int] = field(repr=False)  # by link: its server
    memories: dict[int, int] = field(repr=False)  # by node: the server of a memory
    _gates: dict[Channel, int] = field(default_factory=dict, repr=False)
    _tcms: dict[PeCoord, TcmServers] = field(default_factory=dict, repr=False)
    _routes: dict[tuple[Route, int | None], int] = field(default_factory=dict, repr=False)
    _ways: dict[tuple[int, int, Traffic, int], int] = field(default_factory=dict, repr=False)
    _trips: dict[tuple[int, int, Channel, int, Traffic], int] = field(
        default_factory=dict, repr=False
    )

    def round_trip(
        self,
        requester: int,
        target: int,
        channel: Channel,
        spread: int,
        traffic: Traffic = Traffic.REQUEST,
    ) -> int:
        """From a node to a memory's node and back, through a DMA channel; made at first use.

        ``traffic`` is the class of packets on the way there.
        """
        key = (requester, target, channel, spread, traffic)
        if key not in self._trips:
            out = self.machine.route(requester, target, traffic, spread)
            self._trips[key] = self.engine.add_round_trip(
                self._route(out, self._memory(target)),
                self.way(target, requester, Traffic.RESPONSE, spread),
                gate=self._gate(channel),
                writes=channel.access is Access.WRITE,
                is_home=channel.owner == self.machine.nodes[target].where,
            )
        return self._trips[key]

    def pe_access(
        self,
        pe: PeCoord,
        target: PeCoord,
        access: Access,
        channel: int = 0,
        memory: MemoryKind = MemoryKind.HBM,
    ) -> int:
        """The round trip from a PE's DMA, through one of its channels, to a memory of a PE."""
        through = Channel(pe, access, channel)
        return self._access(self._dma(pe), target, through, pe.pe, memory)

    def host_access(
        self, target: PeCoord, access: Access, memory: MemoryKind = MemoryKind.HBM
    ) -> int:
        """The round trip from the host to a memory of a PE."""
        through = Channel(SipCoord(target.sip), access)
        return self._access(self.machine.host, target, through, target.pe, memory)

    def _access(
        self, requester: int, target: PeCoord, channel: Channel, spread: int, memory: MemoryKind
    ) -> int:
        if memory is MemoryKind.TCM:
            return self._tcm_trip(requester, target, channel, spread)
        return self.round_trip(requester, self.memory_node(target, memory), channel, spread)

    def tcm_servers(self, pe: PeCoord) -> TcmServers:
        """The ports of a PE's TCM, made at first use."""
        if pe not in self._tcms:
            servers = tcm_servers(f"{place_name(pe)}.tcm", self.machine.spec.pe.tcm)
            self._tcms[pe] = TcmServers(*map(self.engine.add_server, servers))
        return self._tcms[pe]

    def _tcm_trip(self, requester: int, target: PeCoord, channel: Channel, spread: int) -> int:
        """To the DMA of a PE and through a port of its TCM, and back; made at first use.

        What is written crosses the write port when it has come, what is read the read port before
        it goes: behind the port it is served. The PE itself needs no network, so in the engine's
        words the data that it reads go out, through the port, and an answer comes back.
        """
        node = self._dma(target)
        key = (requester, node, channel, spread, Traffic.REQUEST)
        if key not in self._trips:
            tcm, writes = self.tcm_servers(target), channel.access is Access.WRITE
            port = tcm.write if writes else tcm.read
            is_own = requester == node
            if is_own:
                routes = self.engine.add_route([port]), self.engine.add_route([tcm.turn])
            else:
                there = self.machine.route(requester, node, Traffic.REQUEST, spread)
                back = self.way(node, requester, Traffic.RESPONSE, spread)
                routes = self._route(there, port if writes else None), back
            self._trips[key] = self.engine.add_round_trip(
                *routes,
                gate=self._gate(channel),
                writes=writes or is_own,
                inside=None if writes or is_own else self.engine.add_route([port]),
            )
        return self._trips[key]

    def way(self, source: int, target: int, traffic: Traffic, spread: int) -> int:
        """The engine's route from node to node; made at first use."""
        key = (source, target, traffic, spread)
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = self._route(self.machine.route(*key))
        return way

    def message_route(self, sender: PeCoord, receiver: PeCoord) -> int:
        """From a PE's DMA to another's, on the virtual channels of communication."""
        return self.way(self._dma(sender), self._dma(receiver), Traffic.COMMUNICATION, sender.pe)

    def _gate(self, channel: Channel) -> int:
        """The engine's gate of a channel, made at first use: a gate's number decides nothing."""
        if channel not in self._gates:
            check_channel(self.machine, channel)
            self._gates[channel] = self.engine.add_gate(window_packets(self.machine, channel))
        return self._gates[channel]

    def _dma(self, pe: PeCoord) -> int:
        return self.machine.node_of(NodeKind.PE_DMA, pe)

    def memory_node(self, pe: PeCoord, memory: MemoryKind = MemoryKind.HBM) -> int:
        """The node of the SRAM of a PE's cube, or the controller of the slice that it owns."""
        kind = NodeKind.SRAM if memory is MemoryKind.SRAM else NodeKind.HBM_CTRL
        return self.machine.node_of(kind, pe)

    def _memory(self, node: int) -> int:
        server = self.memories.get(node)
        if server is None:
            name = self.machine.nodes[node].name
            fix = "end it at an HBM controller or an SRAM"
            raise SpecError("round trip", f"{name} as its target", "a memory", fix)
        return server

    def _route(self, hops: Route, last: int | None = None) -> int:
        """Over links, and through a server behind the last of them."""
        key = (hops, last)
        if key not in self._routes:
            servers = [self.links[link] for link, _ in hops]
            channels = [channel for _, channel in hops]
            if last is not None:
                servers.append(last)
                channels.append(0)
            self._routes[key] = self.engine.add_route(servers, channels)
        return self._routes[key]


def build_device(
    machine: Machine,
    choice: EngineKind | Auto = AUTO,
    *,
    links: Collection[int] | None = None,
    around: Around | None = None,
) -> Device:
    """Links and the memories behind them as servers, in the order of their numbers.

    ``links`` are those that will be used, None for all: the others decide nothing. ``around`` may
    put something in the place of a user's link.
    """
    spec = machine.spec
    packets = EngineSpec(spec.flit_bytes, spec.packet_bytes // spec.flit_bytes)
    engine = build_engine(choice, packets)
    used = range(len(machine.links)) if links is None else sorted(links)
    servers = {
        link_id: engine.add_server(link_server(machine, link_id, around)) for link_id in used
    }
    memories: dict[int, int] = {}
    for number in sorted({machine.links[link_id].dst for link_id in used}):
        node = machine.nodes[number]
        if node.kind is NodeKind.HBM_CTRL and isinstance(node.where, PeCoord):
            place = node.where.pe, spec.cube.pes
            memories[number] = add_slice(engine, node.name, spec.cube.hbm, *place)
        elif node.kind is NodeKind.SRAM:
            sram = spec.cube.sram
            memories[number] = add_sram(engine, node.name, sram, packet_bytes=spec.packet_bytes)
    return Device(machine, engine, servers, memories)
