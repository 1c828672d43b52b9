"""Plans on the PEs of lanes: the ways of their messages, and what these take where lanes meet."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from tilewright.collectives.cost import PeCost, Way, message_ps
from tilewright.collectives.group import Group
from tilewright.collectives.link_load import LinkLoads, Pair, Share
from tilewright.collectives.plan import Move, Plan
from tilewright.collectives.schedule import waves_of
from tilewright.device.ipcq import RingSpec
from tilewright.machine.build import Machine
from tilewright.units import PS_PER_US

MOST_LOADS = 64  # lanes whose messages are counted link by link


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

    def waves(self, lead: int) -> list[list[PlacedStep]]:
        """The steps of all ranks in the order in which kernels run them, if blocks are chunks."""
        found: dict[tuple[int, int, int], list[PlacedStep]] = defaultdict(list)
        for rank, steps in enumerate(self.plan.steps):
            waves = {place: wave for wave, place in waves_of(self.plan, rank, lead)}
            following: dict[int, Move] = {}  # what the next step of a block does
            for place in sorted(waves, key=lambda place: (waves[place], place), reverse=True):
                step, wave = steps[place], waves[place]
                then = following.get(step.block)
                found[wave.group, wave.turn, wave.block].append(
                    PlacedStep(
                        wave.group, step.turn, rank, step.move, step.peer, step.block,
                        then is None, then is Move.TAKE,
                    )
                )  # fmt: skip
                following[step.block] = step.move
        return [found[wave][::-1] for wave in sorted(found)]


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
