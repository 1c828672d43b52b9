"""A network flit by flit, straight from the words of docs/engine.md; slow on purpose.

Each flit is an event of its own on every link: it arrives, it starts when it is there and the one
before it has left, it leaves a flit time later. Nothing here computes when a packet's tail will be
anywhere. It is the second implementation that both engines are checked against.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from types import MappingProxyType

from tilewright.validation.workload import LinkSpec, Message, NetworkLoad

SOURCE = -1  # the input of packets that enter here

Queue = tuple[int, int]  # (input, virtual channel); FIFO merges the inputs
Waiting = tuple[int, int, "Visit"]  # (ready, id, visit)


@dataclass(frozen=True, slots=True)
class FlitRun:
    """What happened. ``undelivered`` ids mean a deadlock: nothing was left that could move them."""

    delivered_ps: Mapping[int, int]
    undelivered: tuple[int, ...]
    starts_ps: Mapping[tuple[int, int], int]  # by (message id, hop)


@dataclass(eq=False, slots=True)
class Visit:
    """One message on one hop of its route."""

    message: Message
    hop: int
    num_arrived: int = 0
    num_left: int = 0

    @property
    def is_last_hop(self) -> bool:
        return self.hop == len(self.message.links) - 1

    @property
    def came_from(self) -> Queue:
        if self.hop == 0:
            return SOURCE, self.message.channels[0]
        return self.message.links[self.hop - 1], self.message.channels[self.hop - 1]

    @property
    def channel_behind(self) -> int:
        return self.message.channels[self.hop]


@dataclass(eq=False, slots=True)
class Link:
    """Plain state of one link."""

    spec: LinkSpec
    queues: dict[Queue, list[Waiting]] = field(default_factory=lambda: defaultdict(list))
    taken_flits: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by channel
    holder: Visit | None = None  # the packet that has the link until its tail has left
    is_sending: bool = False  # one flit of the holder
    last_granted: Queue = (SOURCE - 1, 0)  # before every queue there is

    def add_ready(self, visit: Visit, now_ps: int) -> None:
        came_from, channel = visit.came_from
        queue = (came_from if self.spec.round_robin else SOURCE, channel)
        self.queues[queue].append((now_ps, visit.message.message_id, visit))

    def may_start(self, visit: Visit) -> bool:
        if visit.is_last_hop or self.spec.buffer_flits is None:
            return True
        taken = self.taken_flits[visit.channel_behind]
        return taken + visit.message.flits <= self.spec.buffer_flits

    def take_next(self) -> Visit | None:
        """Remove and return the packet that starts now, if one may."""
        firsts = {queue: min(waiting) for queue, waiting in self.queues.items() if waiting}
        eligible = {queue: first for queue, first in firsts.items() if self.may_start(first[2])}
        if not eligible:
            return None
        if self.spec.round_robin:
            later = [queue for queue in eligible if queue > self.last_granted]
            queue = min(later or eligible)
        else:
            queue = min(eligible, key=lambda queue: eligible[queue][:2])
        self.last_granted = queue
        self.queues[queue].remove(eligible[queue])
        return eligible[queue][2]


class FlitNetwork:
    """Instant by instant: all that arrives, leaves or returns, then each touched link acts."""

    def __init__(self, load: NetworkLoad) -> None:
        self.links = [Link(spec) for spec in load.links]
        self.pending: list[tuple[int, int, Callable[[int], None]]] = []
        self.num_scheduled = 0
        self.touched: list[Link] = []
        self.visits: dict[tuple[int, int], Visit] = {}  # by (message id, hop)
        self.delivered_ps: dict[int, int] = {}
        self.starts_ps: dict[tuple[int, int], int] = {}
        for message in load.messages:
            for hop in range(len(message.links)):
                self.visits[message.message_id, hop] = Visit(message, hop)
            for _flit in range(message.flits):
                self.at(message.at_ps, partial(self.arrive, self.visits[message.message_id, 0]))

    def at(self, time_ps: int, action: Callable[[int], None]) -> None:
        # a tie-break for the heap only: what an instant brings has no order
        self.num_scheduled += 1
        heappush(self.pending, (time_ps, self.num_scheduled, action))

    def run(self) -> None:
        while self.pending:
            now_ps = self.pending[0][0]
            while self.pending and self.pending[0][0] == now_ps:
                _, _, action = heappop(self.pending)
                action(now_ps)
            for link in self.touched:
                self.act(link, now_ps)
            self.touched.clear()

    def link_of(self, visit: Visit) -> Link:
        return self.links[visit.message.links[visit.hop]]

    def arrive(self, visit: Visit, now_ps: int) -> None:
        """A flit is there. The head makes its packet ready, or the tail where links re-assemble."""
        link = self.link_of(visit)
        visit.num_arrived += 1
        if visit.num_arrived == (visit.message.flits if link.spec.reassemble else 1):
            link.add_ready(visit, now_ps)
        self.touched.append(link)

    def act(self, link: Link, now_ps: int) -> None:
        """Grant a free link; start the holder's next flit if it is there."""
        if link.holder is None:
            link.holder = link.take_next()
            if link.holder is None:
                return
            visit = link.holder
            self.starts_ps[visit.message.message_id, visit.hop] = now_ps
            if not visit.is_last_hop:  # delivery needs no buffer
                link.taken_flits[visit.channel_behind] += visit.message.flits
        if not link.is_sending and link.holder.num_left < link.holder.num_arrived:
            link.is_sending = True
            self.at(now_ps + link.spec.flit_ps, partial(self.leave, link.holder))

    def leave(self, visit: Visit, now_ps: int) -> None:
        """A flit has left the link; with the tail goes the hold, and the credits set out."""
        link = self.link_of(visit)
        link.is_sending = False
        visit.num_left += 1
        is_tail = visit.num_left == visit.message.flits
        if is_tail:
            link.holder = None
            if visit.hop > 0:
                before = self.visits[visit.message.message_id, visit.hop - 1]
                credit_ps = self.link_of(before).spec.credit_ps
                self.at(now_ps + credit_ps, partial(self.give_back, before))
        there_ps = now_ps + link.spec.latency_ps
        if not visit.is_last_hop:
            behind = self.visits[visit.message.message_id, visit.hop + 1]
            self.at(there_ps, partial(self.arrive, behind))
        elif is_tail:
            self.delivered_ps[visit.message.message_id] = there_ps
        self.touched.append(link)

    def give_back(self, visit: Visit, _now_ps: int) -> None:
        """The credits of a packet return to the link that sent it."""
        link = self.link_of(visit)
        link.taken_flits[visit.channel_behind] -= visit.message.flits
        self.touched.append(link)


def run_flits(load: NetworkLoad) -> FlitRun:
    """Simulate every flit of every message until nothing moves.

    >>> link = LinkSpec("link", flit_ps=2, latency_ps=20)
    >>> message = Message(message_id=0, at_ps=5, links=(0,), channels=(0,), flits=3)
    >>> run_flits(NetworkLoad((link,), (message,))).delivered_ps[0]
    31
    """
    network = FlitNetwork(load)
    network.run()
    ids = {message.message_id for message in load.messages}
    return FlitRun(
        delivered_ps=MappingProxyType(network.delivered_ps),
        undelivered=tuple(sorted(ids - network.delivered_ps.keys())),
        starts_ps=MappingProxyType(network.starts_ps),
    )
