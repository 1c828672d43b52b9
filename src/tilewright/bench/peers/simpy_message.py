"""Message and flit level in SimPy: stores and a worker process for each link, FIFO order.

At message level a hop has three events: the delay until the packet is ready, the put and the get.
The worker books its link with the (head, tail) recurrence and never sleeps for the hold, which
keeps the peer lean. At flit level every flit is put and got on every link.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import simpy
from simpy.core import SimTime
from simpy.events import NORMAL, EventPriority

from tilewright.bench.peers.simpy_credit import run_credits
from tilewright.bench.peers.simpy_event import Delayed, arrival_priority, inject, run_timed
from tilewright.errors import SpecError
from tilewright.validation.engine_run import PeerRun
from tilewright.validation.workload import (
    ClosedLoop,
    LinkSpec,
    Message,
    NetworkLoad,
    ReadStep,
    request_id,
    response_id,
)


@dataclass(eq=False, slots=True)
class Packet:
    """A message on its way; ``tail_ps`` is when its tail is at the next link."""

    message_id: int
    links: Sequence[int]
    flits: int
    tail_ps: SimTime
    arrived: simpy.Event | None = None
    hop: int = 0
    priority: EventPriority = field(init=False)

    def __post_init__(self) -> None:
        self.priority = arrival_priority(self.message_id)


class Network:
    """The links as stores with one worker each."""

    def __init__(self, links: Sequence[LinkSpec]) -> None:
        self.env = simpy.Environment()
        self.delivered_ps: dict[int, SimTime] = {}
        self.stores = [simpy.Store(self.env) for _ in links]
        self.reassembles = [link.reassemble for link in links]
        for link, store in zip(links, self.stores, strict=True):
            self.env.process(self.serve(link, store))

    def ready(self, event: Delayed) -> None:
        packet: Packet = event._value
        self.stores[packet.links[packet.hop]].put(packet)

    def send(self, packet: Packet, delay_ps: SimTime) -> None:
        """Make the packet ready at its next link after a delay."""
        Delayed(self.env, self.ready, packet, packet.priority, delay_ps)

    def deliver(self, packet: Packet) -> None:
        self.delivered_ps[packet.message_id] = packet.tail_ps
        if packet.arrived is not None:
            packet.arrived._ok = True
            packet.arrived._value = None
            self.env.schedule(packet.arrived, NORMAL, packet.tail_ps - self.env.now)

    def serve(self, link: LinkSpec, store: simpy.Store) -> Generator[simpy.Event, Packet, None]:
        env, reassembles = self.env, self.reassembles
        flit_ps, latency_ps = link.flit_ps, link.latency_ps
        free_ps: SimTime = 0
        while True:
            packet = yield store.get()
            now_ps = env.now
            start_ps = max(now_ps, free_ps)
            free_ps = max(start_ps + packet.flits * flit_ps, packet.tail_ps + flit_ps)
            packet.tail_ps = free_ps + latency_ps
            packet.hop += 1
            if packet.hop == len(packet.links):
                self.deliver(packet)
            elif reassembles[packet.links[packet.hop]]:
                self.send(packet, packet.tail_ps - now_ps)
            else:
                self.send(packet, start_ps + flit_ps + latency_ps - now_ps)


def run_open(load: NetworkLoad) -> PeerRun:
    """Run an open loop; a load with credits or round robin goes to the peer that arbitrates."""
    if load.arbitrates:
        return run_credits(load)
    network = Network(load.links)
    packets = [Packet(m.message_id, m.links, m.flits, m.at_ps) for m in load.messages]
    inject(network.env, packets, network.ready)
    return run_timed(network.env, network.delivered_ps, load.num_hops)


def run_closed(loop: ClosedLoop) -> PeerRun:
    """Run a closed loop; ids are those of ``request_id`` and ``response_id``."""
    if any(link.arbitrates for link in loop.links):
        fix = "drop buffer_flits and round_robin"
        raise SpecError("closed loop", "a link that arbitrates", "plain FIFO links", fix)
    network = Network(loop.links)
    for index, steps in enumerate(loop.programs):
        network.env.process(read_and_compute(network, index, steps))
    return run_timed(network.env, network.delivered_ps, loop.num_hops)


def read_and_compute(
    network: Network, program: int, steps: Sequence[ReadStep]
) -> Generator[simpy.Event, object, None]:
    env = network.env
    for index, step in enumerate(steps):
        arrived = env.event()
        identity = request_id(program, index)
        network.send(Packet(identity, step.request_links, 1, env.now, arrived), 0)
        yield arrived
        arrived = env.event()
        identity = response_id(program, index)
        response = Packet(identity, step.response_links, step.response_flits, env.now, arrived)
        network.send(response, 0)
        yield arrived
        yield env.timeout(step.compute_ps)


def bare_timeout_rate(num_timeouts: int) -> float:
    """Timeouts per second of a process that does nothing else: the ceiling of any SimPy model."""
    env = simpy.Environment()

    def wait() -> Generator[simpy.Event, object, None]:
        for _ in range(num_timeouts):
            yield env.timeout(1)

    env.process(wait())
    return num_timeouts / run_timed(env, {}, 0).seconds


class Visit:
    """A packet on one hop; its flits wait in a store of their own, for packets do not mix."""

    __slots__ = ("flits", "hop", "message", "num_arrived", "priority")

    def __init__(self, env: simpy.Environment, message: Message, hop: int) -> None:
        self.message = message
        self.hop = hop
        self.num_arrived = 0
        self.flits = simpy.Store(env)
        self.priority = arrival_priority(message.message_id)


class FlitNetwork:
    """The links as stores of ready packets with one worker each."""

    def __init__(self, load: NetworkLoad) -> None:
        self.env = simpy.Environment()
        self.delivered_ps: dict[int, SimTime] = {}
        self.specs = load.links
        self.packets = [simpy.Store(self.env) for _ in load.links]
        for link, packets in zip(load.links, self.packets, strict=True):
            self.env.process(self.serve(link, packets))
        for message in load.messages:
            visit = Visit(self.env, message, hop=0)
            for _flit in range(message.flits):
                self.send(visit, message.at_ps)

    def send(self, visit: Visit, delay_ps: SimTime) -> None:
        """Let one flit arrive after a delay."""
        Delayed(self.env, self.arrive, visit, visit.priority, delay_ps)

    def arrive(self, event: Delayed) -> None:
        visit: Visit = event._value
        visit.num_arrived += 1
        visit.flits.put(None)
        link_index = visit.message.links[visit.hop]
        waits_for = visit.message.flits if self.specs[link_index].reassemble else 1
        if visit.num_arrived == waits_for:
            self.packets[link_index].put(visit)

    def serve(self, link: LinkSpec, packets: simpy.Store) -> Generator[simpy.Event, Visit, None]:
        env = self.env
        while True:
            visit = yield packets.get()
            message = visit.message
            is_last = visit.hop == len(message.links) - 1
            behind = None if is_last else Visit(env, message, visit.hop + 1)
            for _flit in range(message.flits):
                yield visit.flits.get()
                yield env.timeout(link.flit_ps)
                if behind is not None:
                    self.send(behind, link.latency_ps)
            if is_last:
                self.delivered_ps[message.message_id] = env.now + link.latency_ps


def run_flits(load: NetworkLoad) -> PeerRun:
    """Run an open loop of plain FIFO links, one flit at a time."""
    if load.arbitrates:
        fix = "drop buffer_flits and round_robin"
        raise SpecError("flit peer", "a link that arbitrates", "plain FIFO links", fix)
    network = FlitNetwork(load)
    return run_timed(network.env, network.delivered_ps, load.num_hops)
