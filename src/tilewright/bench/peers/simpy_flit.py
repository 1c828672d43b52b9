"""Flit level in SimPy: every flit is put and got on every link. Unbounded FIFO links only."""

from collections.abc import Generator

import simpy
from simpy.core import SimTime

from tilewright.bench.peers.simpy_event import Delayed, arrival_priority, run_timed
from tilewright.errors import SpecError
from tilewright.validation.engine_run import PeerRun
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad


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


def run_open(load: NetworkLoad) -> PeerRun:
    """Run an open loop of plain FIFO links, one flit at a time."""
    if load.arbitrates:
        fix = "drop buffer_flits and round_robin"
        raise SpecError("flit peer", "a link that arbitrates", "plain FIFO links", fix)
    network = FlitNetwork(load)
    return run_timed(network.env, network.delivered_ps, load.num_hops)
