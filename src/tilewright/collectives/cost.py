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
from tilewright.collectives.plan import Plan
from tilewright.collectives.schedule import Message, Wave, block_messages
from tilewright.device.ipcq import RingSpec
from tilewright.device.least_time import way_ps
from tilewright.device.memory import first_access_ps
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.units import PS_PER_S, PS_PER_US, num_flits


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
    sent_bytes, back_bytes = (spec.packet_bytes, 1) if is_write else (1, spec.packet_bytes)
    out_ps = way_ps(machine, dma, memory, Traffic.REQUEST, pe.pe, sent_bytes, is_least=False)
    back_ps = way_ps(machine, memory, dma, Traffic.RESPONSE, pe.pe, back_bytes, is_least=False)
    first_ps = 0
    if spec.cube.hbm.impl is None:
        first_ps = first_access_ps(spec.cube.hbm, spec.packet_bytes, is_write=is_write)
    return out_ps + back_ps + first_ps


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
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (sender, receiver))
    route = machine.route(start, end, Traffic.COMMUNICATION, sender.pe)
    links = tuple(link for link, _ in route)
    slowest = min(machine.links[link].bytes_per_us for link in links)
    return Way(machine, links, Fraction(PS_PER_US, slowest))


def message_ps(machine: Machine, sender: PeCoord, receiver: PeCoord) -> int:
    """From the sender's command to the first flit at the receiver, on an idle machine."""
    cost = machine.spec.pe
    commands_ps = 2 * cost.cpu.command_ps + cost.scheduler.command_ps
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (sender, receiver))
    on_links = way_ps(machine, start, end, Traffic.COMMUNICATION, sender.pe, 1, is_least=False)
    return on_links + commands_ps


Pair = tuple[int, int, int]
"""A turn, a rank and its peer."""


class Share(NamedTuple):
    """What a message takes for a byte, and by which link it leaves: those of a rank that leave by
    one link follow each other.
    """

    byte: Fraction
    exit: int


class _Load(NamedTuple):
    """What links of a kind and rate carry: blocks one way, credits of blocks the other."""

    kind: LinkKind
    bytes_per_us: int
    num_blocks: int
    num_credits: int


class LinkLoads:
    """Who sends how many blocks over which link in which turn.

    Each lane that is added stands for ``share`` lanes on the links between SIPs, which all use.
    """

    def __init__(self, machine: Machine, group: Group, share: Fraction, ring: RingSpec) -> None:
        self._machine = machine
        self._group = group
        self._share = share
        # each fragment is answered by a credit of at least a flit
        credit_bytes = -(-ring.token_bytes // machine.spec.flit_bytes) * machine.spec.flit_bytes
        self._credit = Fraction(credit_bytes, ring.slot_bytes)
        self._ways: dict[tuple[int, int, int], Way] = {}  # by lane, sender and receiver
        self._blocks: dict[int, Counter[int]] = defaultdict(Counter)  # by turn, then link
        self._credits: dict[int, Counter[int]] = defaultdict(Counter)
        self._times: dict[_Load, Fraction] = {}
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

    def shares(self, lane: int, plan: Plan) -> dict[Pair, Share]:
        """What a byte takes, if a rank sends its own blocks of a turn one after the other."""
        own: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)  # by turn and rank
        sent = _sent_blocks(plan)
        for (turn, rank, peer), num_blocks in sent.items():
            for link in self._way(lane, rank, peer).links:
                own[turn, rank][link] += num_blocks
        shares: dict[Pair, Share] = {}
        for turn, rank, peer in sent:
            mine, blocks, credits = own[turn, rank], self._blocks[turn], self._credits[turn]
            times = {
                link: self._time(self._load(link, blocks[link], credits[link])) / mine[link]
                for link in self._way(lane, rank, peer).links
            }
            shares[turn, rank, peer] = Share(max(times.values()), self._exit(times))
        return shares

    def _exit(self, times: Mapping[int, Fraction]) -> int:
        """The slowest link of a way on the sender's side, up to the one between SIPs; the first of
        equal ones.
        """
        own: list[int] = []
        for link in times:
            own.append(link)
            if self._machine.links[link].kind is LinkKind.FABRIC:
                break
        return max(own, key=lambda link: times[link])

    def busiest(self) -> Fraction:
        blocks, credits = Counter[int](), Counter[int]()
        for turn, links in self._blocks.items():
            for link, num_blocks in links.items():
                blocks[link] += num_blocks
                credits[link] += self._credits[turn][link]
        loads = {self._load(link, count, credits[link]) for link, count in blocks.items()}
        return max(map(self._time, loads), default=Fraction(0)) / self._num_blocks

    def _load(self, link: int, num_blocks: int, num_credits: int) -> _Load:
        wire = self._machine.links[link]
        return _Load(wire.kind, wire.bytes_per_us, num_blocks, num_credits)

    def _time(self, load: _Load) -> Fraction:
        """Of a byte of every block, and of the credits; lanes that are not counted share it."""
        if load not in self._times:
            factor = self._share if load.kind is LinkKind.FABRIC else Fraction(1)
            blocks = load.num_blocks + self._credit * load.num_credits
            self._times[load] = factor * blocks * Fraction(PS_PER_US, load.bytes_per_us)
        return self._times[load]

    def _way(self, lane: int, rank: int, peer: int) -> Way:
        key = lane, rank, peer
        if key not in self._ways:
            ranks = self._group.ranks
            self._ways[key] = way_of(self._machine, ranks[rank][lane], ranks[peer][lane])
        return self._ways[key]


def _sent_blocks(plan: Plan) -> Counter[Pair]:
    return Counter((step.turn, rank, step.peer) for rank, step in plan.sends())


MOST_LOADS = 64  # lanes whose messages are counted link by link


@dataclass(frozen=True)
class LanePlan:
    """A plan on the PEs of a lane: the ways of its messages, and what each takes for a byte.

    ``shares`` count all who use a link in the same turn: the plan's other ranks, and the other
    lanes.
    """

    plan: Plan
    ways: Mapping[tuple[int, int], Way]  # by sender and receiver
    shares: Mapping[Pair, Share]
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
        arriving = 1 / min(share.byte for share in self.shares.values())
        return max(self.cost.memory, 1 / max(own - arriving, own / 2))

    def waves(self, lead: int) -> list[list[tuple[int, Message]]]:
        """Return ranks and their messages in the order in which kernels run them.

        A block is one chunk, whose start is the number of the block.
        """
        found: dict[Wave, list[tuple[int, Message]]] = defaultdict(list)
        for rank in reversed(range(self.plan.num_ranks)):
            for message in block_messages(self.plan, rank, lead):
                found[message.wave].append((rank, message))
        return [found[wave] for wave in sorted(found)]


def lane_plans(
    machine: Machine, group: Group, plans: Mapping[int, Plan], ring: RingSpec
) -> list[LanePlan]:
    """Those that differ among the plans of all lanes, each on the lane that has farthest to go.

    Links between SIPs are shared by all lanes, so they carry what the other lanes send, too; the
    first ``MOST_LOADS`` stand for all.
    """
    loads = dict(islice(plans.items(), MOST_LOADS))
    book = LinkLoads(machine, group, Fraction(len(plans), max(1, len(loads))), ring)
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
