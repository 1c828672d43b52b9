"""What a plan takes on paper: alpha, beta and gamma of the machine's spec, never of a fit.

*alpha* is the latency of a message: the path of its last packet, the ports that its last fragment
passes, and the commands on both sides. *beta* is the time of a byte on the narrowest link of its
way, over all who share that link in the same turn. *gamma* is the time of a byte inside a PE: both
operands through the read port of the TCM, the vector unit, the result through the write port; and
the HBM, where a block comes from at the beginning and goes to at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from tilewright.collectives.group import Group
from tilewright.collectives.plan import Move, Plan
from tilewright.collectives.schedule import waves_of
from tilewright.device.hbm import first_access_ps
from tilewright.device.ipcq import RingSpec
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.route import Route
from tilewright.machine.route_level import Traffic
from tilewright.machine.route_time import zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.units import PS_PER_S, PS_PER_US, num_flits

__all__ = (
    "LanePlan",
    "PeCost",
    "PlacedStep",
    "Way",
    "lane_plans",
    "message_ps",
    "path_of",
    "way_of",
)


MOST_LOADS = 64  # lanes whose messages are counted link by link


@dataclass(frozen=True, slots=True)
class PeCost:
    """What the spec says of a PE: picoseconds of commands, and of a byte or an element."""

    issue_ps: int  # of a command by the CPU
    dispatch_ps: int  # of a part of it by the scheduler
    read: Fraction  # of a byte at the read port of the TCM
    write: Fraction
    vector: Fraction  # of an element
    load_ps: int  # until the first bytes of the HBM are there
    store_ps: int
    memory: Fraction  # of a byte of the PE's slice, refresh counted in
    register_bytes: int

    @classmethod
    def of(cls, machine: Machine, pe: PeCoord) -> "PeCost":
        spec = machine.spec
        tcm, vector, hbm = spec.pe.tcm, spec.pe.vector, spec.cube.hbm
        return cls(
            spec.pe.cpu.command_ps,
            spec.pe.scheduler.command_ps,
            Fraction(PS_PER_US, tcm.read_bytes_per_us),
            Fraction(PS_PER_US, tcm.write_bytes_per_us),
            Fraction(PS_PER_S * vector.simple_cycles, vector.lanes * vector.hz),
            _access_ps(machine, pe, is_write=False),
            _access_ps(machine, pe, is_write=True),
            Fraction(PS_PER_US, slice_bytes_per_us(spec)) / usable_share(hbm),
            spec.pe.registers.capacity_bytes,
        )


def _access_ps(machine: Machine, pe: PeCoord, *, is_write: bool) -> int:
    """Of the first packet to or from a PE's own slice, on an idle machine."""
    spec = machine.spec
    dma, memory = machine.node_of(NodeKind.PE_DMA, pe), machine.node_of(NodeKind.HBM_CTRL, pe)
    out = machine.route(dma, memory, Traffic.REQUEST, pe.pe)
    back = machine.route(memory, dma, Traffic.RESPONSE, pe.pe)
    data = num_flits(spec.packet_bytes, flit_bytes=spec.flit_bytes)
    flits = (data, 1) if is_write else (1, data)
    on_the_way = [
        _idle_ps(machine, route, count) for route, count in zip((out, back), flits, strict=True)
    ]
    first_ps = 0
    if spec.cube.hbm.impl is None:
        first_ps = first_access_ps(spec.cube.hbm, spec.packet_bytes, is_write=is_write)
    return sum(on_the_way) + first_ps


def _idle_ps(machine: Machine, route: Route, flits: int) -> int:
    links = [machine.links[link] for link, _ in route]
    return zero_load_ps(links, num_flits=flits, flit_bytes=machine.spec.flit_bytes)


def path_of(machine: Machine, sender: PeCoord, receiver: PeCoord) -> Route:
    """The links of a message between two PEs."""
    source = machine.node_of(NodeKind.PE_DMA, sender)
    target = machine.node_of(NodeKind.PE_DMA, receiver)
    return machine.route(source, target, Traffic.COMMUNICATION, sender.pe)


@dataclass(frozen=True, slots=True)
class Way:
    """From one PE to another: its links, and what its narrowest one takes for a byte."""

    machine: Machine
    links: tuple[int, ...]
    byte: Fraction

    def latency_ps(self, num_bytes: int, ring: RingSpec, cost: PeCost) -> int:
        """Beside the time on the narrowest link: of the last packet and of the last fragment.

        The sender's queue takes a dispatch, and one more to look at the credits.
        """
        spec = self.machine.spec
        packet_bytes = min(num_bytes, spec.packet_bytes)
        flits = num_flits(packet_bytes, flit_bytes=spec.flit_bytes)
        links = [self.machine.links[link] for link in self.links]
        on_the_way = zero_load_ps(links, num_flits=flits, flit_bytes=spec.flit_bytes)
        fragment_bytes = min(num_bytes, ring.slot_bytes)
        ports = int(fragment_bytes * (cost.write + cost.read))
        return on_the_way - int(packet_bytes * self.byte) + ports + 2 * cost.dispatch_ps


def way_of(machine: Machine, sender: PeCoord, receiver: PeCoord) -> Way:
    links = tuple(link for link, _ in path_of(machine, sender, receiver))
    slowest = min(machine.links[link].bytes_per_us for link in links)
    return Way(machine, links, Fraction(PS_PER_US, slowest))


def message_ps(machine: Machine, sender: PeCoord, receiver: PeCoord) -> int:
    """From the sender's command to the first flit at the receiver, on an idle machine."""
    cost = machine.spec.pe
    commands_ps = 2 * cost.cpu.command_ps + cost.scheduler.command_ps
    return _idle_ps(machine, path_of(machine, sender, receiver), 1) + commands_ps


Pair = tuple[int, int, int]  # a turn, a rank and its peer


class PlacedStep(NamedTuple):
    """A step of a rank; no other step of it has the block, or the next one replaces it."""

    group: int
    turn: int
    rank: int
    move: Move
    peer: int
    block: int
    is_last: bool
    is_replaced: bool


@dataclass(frozen=True)
class LanePlan:
    """A plan on the PEs of a lane: the ways of its messages, and what each takes for a byte.

    ``bytes_ps`` counts all who use a link in the same turn: the plan's other ranks, and the other
    lanes.
    """

    plan: Plan
    ways: Mapping[tuple[int, int], Way]  # by sender and receiver
    bytes_ps: Mapping[Pair, Fraction]
    busiest: Fraction  # of a byte of the shard on the link that carries most, over all turns
    cost: PeCost

    @cached_property
    def load_beside(self) -> Fraction:
        """Of a byte that is loaded while others arrive: both come in by the PE's own link.

        Two that share a link have at least half of it each.
        """
        if not self.ways:
            return self.cost.memory
        way = next(iter(self.ways.values()))
        own = Fraction(way.machine.links[way.links[-1]].bytes_per_us, PS_PER_US)
        arriving = 1 / min(self.bytes_ps.values())
        return max(self.cost.memory, 1 / max(own - arriving, own / 2))

    def waves(self, lead: int) -> list[list[PlacedStep]]:
        """The steps of all ranks in the order in which kernels run them, if blocks are chunks."""
        found: dict[tuple[int, int, int], list[PlacedStep]] = defaultdict(list)
        for rank, steps in enumerate(self.plan.steps):
            waves = {place: wave for wave, place in waves_of(self.plan, rank, lead)}
            following: dict[int, Move] = {}  # what the next step of a block does
            for place in sorted(waves, key=lambda place: waves[place], reverse=True):
                step, wave = steps[place], waves[place]
                then = following.get(step.block)
                found[wave.group, wave.turn, wave.block].append(
                    PlacedStep(
                        wave.group, step.turn, rank, step.move, step.peer, step.block,
                        then is None, then is Move.TAKE,
                    )
                )  # fmt: skip
                following[step.block] = step.move
        return [found[wave] for wave in sorted(found)]


def lane_plans(
    machine: Machine, group: Group, plans: Mapping[int, Plan], ring: RingSpec
) -> list[LanePlan]:
    """Those that differ among the plans of all lanes, each on the lane that has farthest to go.

    Links between SIPs are shared by all lanes, so they carry what the other lanes send, too; the
    first ``MOST_LOADS`` stand for all.
    """
    loads = dict(islice(plans.items(), MOST_LOADS))
    book = _Loads(machine, group, Fraction(len(plans), max(1, len(loads))), ring)
    for lane, plan in loads.items():
        book.add(lane, plan)
    busiest = book.busiest()
    cost = PeCost.of(machine, group.ranks[0][0])
    return [
        LanePlan(plan, book.ways(lane, plan), book.shares(lane, plan), busiest, cost)
        for plan, lane in _farthest(machine, group, plans).items()
    ]


def _farthest(machine: Machine, group: Group, plans: Mapping[int, Plan]) -> dict[Plan, int]:
    """By plan the lane whose messages take longest to its first peer; of equal ones the first."""
    found: dict[Plan, tuple[int, int]] = {}
    for lane, plan in plans.items():
        peers = plan.peers(0)
        way = group.ranks[0][lane], group.ranks[peers[0] if peers else 0][lane]
        away_ps = message_ps(machine, *way) if peers else 0
        if plan not in found or away_ps > found[plan][0]:
            found[plan] = away_ps, lane
    return {plan: lane for plan, (_, lane) in found.items()}


class _Loads:
    """Who sends how many blocks over which link in which turn."""

    def __init__(self, machine: Machine, group: Group, share: Fraction, ring: RingSpec) -> None:
        self._machine = machine
        self._group = group
        self._share = share
        # each fragment is answered by a credit of at least a flit
        credit_bytes = -(-ring.token_bytes // machine.spec.flit_bytes) * machine.spec.flit_bytes
        self._credit = Fraction(credit_bytes, ring.slot_bytes)
        self._ways: dict[tuple[PeCoord, PeCoord], Way] = {}
        self._blocks: dict[int, Counter[int]] = defaultdict(Counter)  # by turn, then link
        self._credits: dict[int, Counter[int]] = defaultdict(Counter)
        self._times: dict[tuple[int, int], Fraction] = {}  # by link and turn, when all are added
        self._num_blocks = 1

    def add(self, lane: int, plan: Plan) -> None:
        self._num_blocks = plan.num_blocks
        for (turn, rank, peer), num_blocks in _sent_blocks(plan).items():
            blocks, credits = self._blocks[turn], self._credits[turn]
            for link in self._way(lane, rank, peer).links:
                blocks[link] += num_blocks
            for link in self._way(lane, peer, rank).links:
                credits[link] += num_blocks

    def ways(self, lane: int, plan: Plan) -> dict[tuple[int, int], Way]:
        return {(rank, peer): self._way(lane, rank, peer) for _, rank, peer in _sent_blocks(plan)}

    def shares(self, lane: int, plan: Plan) -> dict[Pair, Fraction]:
        """What a byte takes, if a rank sends its own blocks of a turn one after the other."""
        own: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)  # by turn and rank
        sent = _sent_blocks(plan)
        for (turn, rank, peer), num_blocks in sent.items():
            for link in self._way(lane, rank, peer).links:
                own[turn, rank][link] += num_blocks
        return {
            (turn, rank, peer): max(
                self._link_time(link, turn) / own[turn, rank][link]
                for link in self._way(lane, rank, peer).links
            )
            for turn, rank, peer in sent
        }

    def busiest(self) -> Fraction:
        totals: dict[int, Fraction] = defaultdict(Fraction)
        for turn, links in self._blocks.items():
            for link in links:
                totals[link] += self._link_time(link, turn)
        return max(totals.values(), default=Fraction(0)) / self._num_blocks

    def _link_time(self, link: int, turn: int) -> Fraction:
        """Of a byte of every block that the link carries in a turn, and of the credits."""
        known = self._times.get((link, turn))
        if known is not None:
            return known
        wire = self._machine.links[link]
        factor = self._share if wire.kind is LinkKind.FABRIC else Fraction(1)
        blocks = self._blocks[turn][link] + self._credit * self._credits[turn][link]
        found = factor * blocks * Fraction(PS_PER_US, wire.bytes_per_us)
        self._times[link, turn] = found
        return found

    def _way(self, lane: int, rank: int, peer: int) -> Way:
        pes = self._group.ranks[rank][lane], self._group.ranks[peer][lane]
        if pes not in self._ways:
            self._ways[pes] = way_of(self._machine, *pes)
        return self._ways[pes]


def _sent_blocks(plan: Plan) -> Counter[Pair]:
    return Counter(
        (step.turn, rank, step.peer)
        for rank, steps in enumerate(plan.steps)
        for step in steps
        if step.move is Move.SEND
    )
