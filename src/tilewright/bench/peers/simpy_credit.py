"""Message level in SimPy with finite buffers: credits, virtual channels, FIFO and round robin.

A worker process for each link sleeps until an event at the grant priority of an instant. The events
of a hop are the delay until the packet is ready, that grant and the return of the credits, plus
grants that find no packet which may start.
"""

from collections import deque
from collections.abc import Generator, Sequence

import simpy
from simpy.core import SimTime

from tilewright.bench.peers.simpy_event import GRANT, Delayed, arrival_priority, inject, run_timed
from tilewright.validation.engine_run import PeerRun
from tilewright.validation.workload import LinkSpec, Message, NetworkLoad

SOURCE = -1  # the input of packets that enter here


Slot = tuple[int, int, int]  # (link, input, channel); FIFO merges the inputs


class Packet:
    """A message on its way; ``tail_ps`` is when its tail is at the next link."""

    __slots__ = ("hop", "message", "priority", "queues", "ready_ps", "tail_ps")

    def __init__(self, message: Message, queues: Sequence[deque["Packet"]]) -> None:
        self.message = message
        self.queues = queues  # where it waits on each hop
        self.hop = 0
        self.ready_ps: SimTime = message.at_ps
        self.tail_ps: SimTime = message.at_ps
        self.priority = arrival_priority(message.message_id)


class Link:
    """Queues in front of a link and the credits behind it."""

    def __init__(self, env: simpy.Environment, spec: LinkSpec) -> None:
        self.env = env
        self.spec = spec
        self.free_ps: SimTime = 0
        self.free_flits: dict[int, int] = {}  # by channel; empty without bound
        self.queues: list[deque[Packet]] = []  # in the order of (input, channel)
        self.last_index = -1
        self.num_waiting = 0
        self.wake: simpy.Event = env.event()

    def open_channel(self, channel: int) -> None:
        if self.spec.buffer_flits is not None:
            self.free_flits[channel] = self.spec.buffer_flits

    def ask_grant(self) -> None:
        """Wake the worker when the link is free, unless it is to be woken anyway."""
        wake = self.wake
        if not wake.triggered:
            wake._ok = True
            wake._value = None
            self.env.schedule(wake, GRANT, max(0, self.free_ps - self.env.now))

    def may_start(self, packet: Packet) -> bool:
        message = packet.message
        if not self.free_flits or packet.hop == len(message.links) - 1:
            return True
        return self.free_flits[message.channels[packet.hop]] >= message.flits

    def take_next(self) -> Packet | None:
        """Remove and return the packet that starts now, if one may."""
        index = self.next_in_turn() if self.spec.round_robin else self.first_come()
        if index is None:
            return None
        self.last_index = index
        self.num_waiting -= 1
        return self.queues[index].popleft()

    def next_in_turn(self) -> int | None:
        num_queues = len(self.queues)
        for step in range(1, num_queues + 1):
            index = (self.last_index + step) % num_queues
            queue = self.queues[index]
            if queue and self.may_start(queue[0]):
                return index
        return None

    def first_come(self) -> int | None:
        firsts = (
            (queue[0].ready_ps, queue[0].message.message_id, index)
            for index, queue in enumerate(self.queues)
            if queue and self.may_start(queue[0])
        )
        return min(firsts, default=(0, 0, None))[2]


class CreditNetwork:
    """The links with one worker each."""

    def __init__(self, load: NetworkLoad) -> None:
        self.env = simpy.Environment()
        self.delivered_ps: dict[int, SimTime] = {}
        self.links = [Link(self.env, spec) for spec in load.links]
        slots = {message.message_id: slots_of(load, message) for message in load.messages}
        queues: dict[Slot, deque[Packet]] = {}
        for slot in sorted({slot for of_message in slots.values() for slot in of_message}):
            queues[slot] = deque()
            self.links[slot[0]].queues.append(queues[slot])
        self.packets: list[Packet] = []
        for message in load.messages:
            waits_in = [queues[slot] for slot in slots[message.message_id]]
            self.packets.append(Packet(message, waits_in))
            for link_index, channel in zip(message.links, message.channels, strict=True):
                self.links[link_index].open_channel(channel)
        for link in self.links:
            self.env.process(self.serve(link))

    def send(self, packet: Packet, delay_ps: SimTime) -> None:
        """Make the packet ready at its next link after a delay."""
        Delayed(self.env, self.ready, packet, packet.priority, delay_ps)

    def ready(self, event: Delayed) -> None:
        packet: Packet = event._value
        packet.ready_ps = self.env.now
        packet.queues[packet.hop].append(packet)
        link = self.links[packet.message.links[packet.hop]]
        link.num_waiting += 1
        link.ask_grant()

    def give_back(self, event: Delayed) -> None:
        link, channel, flits = event._value
        link.free_flits[channel] += flits
        if link.num_waiting:
            link.ask_grant()

    def serve(self, link: Link) -> Generator[simpy.Event, object, None]:
        while True:
            yield link.wake
            link.wake = self.env.event()
            packet = link.take_next()
            if packet is not None:
                self.start(link, packet)
                if link.num_waiting:
                    link.ask_grant()

    def start(self, link: Link, packet: Packet) -> None:
        now_ps, flit_ps, latency_ps = self.env.now, link.spec.flit_ps, link.spec.latency_ps
        message, hop = packet.message, packet.hop
        left_ps = max(now_ps + message.flits * flit_ps, packet.tail_ps + flit_ps)
        link.free_ps = left_ps
        packet.tail_ps = left_ps + latency_ps
        packet.hop = hop + 1
        if hop > 0:
            self.return_credits(packet, hop - 1, left_ps - now_ps)
        if packet.hop == len(message.links):
            self.delivered_ps[message.message_id] = packet.tail_ps
            return
        if link.free_flits:
            link.free_flits[message.channels[hop]] -= message.flits
        if self.links[message.links[packet.hop]].spec.reassemble:
            self.send(packet, packet.tail_ps - now_ps)
        else:
            self.send(packet, flit_ps + latency_ps)

    def return_credits(self, packet: Packet, hop: int, delay_ps: SimTime) -> None:
        message = packet.message
        link = self.links[message.links[hop]]
        if link.free_flits:
            credits = (link, message.channels[hop], message.flits)
            delay_ps += link.spec.credit_ps
            Delayed(self.env, self.give_back, credits, packet.priority, delay_ps)


def slots_of(load: NetworkLoad, message: Message) -> list[Slot]:
    """Where a message waits: behind the link it came from, on the channel it had there."""
    slots: list[Slot] = []
    came_from, channel = SOURCE, message.channels[0]
    for link_index, channel_behind in zip(message.links, message.channels, strict=True):
        merged = not load.links[link_index].round_robin
        slots.append((link_index, SOURCE if merged else came_from, channel))
        came_from, channel = link_index, channel_behind
    return slots


def run_credits(load: NetworkLoad) -> PeerRun:
    """Run an open loop over links that arbitrate; after a deadlock, deliveries are missing."""
    network = CreditNetwork(load)
    inject(network.env, network.packets, network.ready)
    return run_timed(network.env, network.delivered_ps, load.num_hops)
