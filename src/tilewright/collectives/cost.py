"""What a plan takes on paper: alpha, beta and gamma of the machine's spec, never of a fit.

*alpha* is the latency of a message: the path of its first packet, and the commands on both sides.
*beta* is the time of a byte on the link that is busiest, over all lanes that share it; *gamma* that
of a byte on the vector unit. Turns come one after the other; what is cut into chunks overlaps
until only the busiest link counts.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tilewright.collectives.group import Group
from tilewright.collectives.plan import Move, Plan
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.route import Route
from tilewright.machine.route_level import Traffic
from tilewright.machine.route_time import zero_load_ps
from tilewright.units import PS_PER_S, PS_PER_US

__all__ = ("Prediction", "Profile", "message_ps", "path_of", "profile_of")

COMMANDS_PER_MESSAGE = 2  # one at the sender, one at the receiver


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of one algorithm, in picoseconds; beta and gamma are of all bytes together."""

    algorithm: str
    alpha_ps: int
    beta_ps: int
    gamma_ps: int

    @property
    def total_ps(self) -> int:
        return self.alpha_ps + self.beta_ps + self.gamma_ps


@dataclass(frozen=True, slots=True)
class Profile:
    """A plan on a machine, by turn, for one byte of a shard; ``busiest`` is a link over all turns.

    Times are exact fractions of picoseconds.
    """

    num_blocks: int
    alphas_ps: tuple[int, ...]
    betas: tuple[Fraction, ...]
    gammas: tuple[Fraction, ...]
    busiest: Fraction

    def predict(
        self, algorithm: str, shard_bytes: int, chunk_bytes: int, element_bytes: int
    ) -> Prediction:
        """Of a shard that is cut into chunks of at most so many bytes."""
        block_bytes = -(-shard_bytes // self.num_blocks)
        num_chunks = max(1, -(-block_bytes // max(1, chunk_bytes)))
        in_turn = sum(self.betas, Fraction(0))
        beta = self.busiest + (in_turn - self.busiest) / num_chunks
        gamma = sum(self.gammas, Fraction(0)) / num_chunks / element_bytes
        return Prediction(
            algorithm, sum(self.alphas_ps), int(beta * shard_bytes), int(gamma * shard_bytes)
        )


def path_of(machine: Machine, sender: PeCoord, receiver: PeCoord) -> Route:
    """The links of a message between two PEs."""
    source = machine.node_of(NodeKind.PE_DMA, sender)
    target = machine.node_of(NodeKind.PE_DMA, receiver)
    return machine.route(source, target, Traffic.COMMUNICATION, sender.pe)


def message_ps(machine: Machine, sender: PeCoord, receiver: PeCoord) -> int:
    """From the sender's command to the first flit at the receiver, on an idle machine."""
    spec = machine.spec
    links = [machine.links[link] for link, _ in path_of(machine, sender, receiver)]
    on_the_way = zero_load_ps(links, num_flits=1, flit_bytes=spec.flit_bytes)
    return on_the_way + COMMANDS_PER_MESSAGE * spec.pe.cpu.command_ps + spec.pe.scheduler.command_ps


def profile_of(
    machine: Machine, group: Group, plans: Mapping[int, Plan], num_lanes: int
) -> Profile:
    """``plans`` are those of some lanes that stand for all ``num_lanes``.

    Links between SIPs are shared by all lanes, so they carry what the other lanes send, too.
    """
    share = Fraction(num_lanes, len(plans))
    loads: dict[int, Counter[int]] = defaultdict(Counter)  # by turn: blocks on links
    alphas: dict[int, int] = defaultdict(int)
    sums: dict[int, Counter[int]] = defaultdict(Counter)  # by turn: blocks that ranks combine
    for lane, plan in plans.items():
        for rank, steps in enumerate(plan.steps):
            for step in steps:
                if step.move is Move.SEND:
                    pes = group.ranks[rank][lane], group.ranks[step.peer][lane]
                    loads[step.turn].update(link for link, _ in path_of(machine, *pes))
                    alphas[step.turn] = max(alphas[step.turn], message_ps(machine, *pes))
                elif step.move is Move.COMBINE and lane == min(plans):
                    sums[step.turn][rank] += 1
    num_blocks = next(iter(plans.values())).num_blocks
    turns = sorted(loads)
    total: Counter[int] = sum((loads[turn] for turn in turns), Counter())
    per_block = Fraction(PS_PER_S, machine.spec.pe.vector.lanes * machine.spec.pe.vector.hz)
    return Profile(
        num_blocks,
        tuple(alphas[turn] for turn in turns),
        tuple(_busiest(machine, loads[turn], share) / num_blocks for turn in turns),
        tuple(max(sums[turn].values(), default=0) * per_block / num_blocks for turn in turns),
        _busiest(machine, total, share) / num_blocks,
    )


def _busiest(machine: Machine, loads: Mapping[int, int], share: Fraction) -> Fraction:
    """Picoseconds for a byte of every block on the link that needs most."""
    return max(
        (_link_time(machine, link, blocks, share) for link, blocks in loads.items()),
        default=Fraction(0),
    )


def _link_time(machine: Machine, link: int, blocks: int, share: Fraction) -> Fraction:
    wire = machine.links[link]
    factor = share if wire.kind is LinkKind.FABRIC else Fraction(1)
    return factor * blocks * Fraction(PS_PER_US, wire.bytes_per_us)
