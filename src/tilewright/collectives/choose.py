"""Which algorithm a call takes, with which chunks and slots, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.collectives.cost import Prediction, Profile, message_ps, path_of, profile_of
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call
from tilewright.collectives.run import NUM_VARIANTS, Tuning
from tilewright.collectives.table import Algorithm, checked_plan, find_algorithm
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.grid import Grid
from tilewright.units import PS_PER_US

__all__ = ("AUTO_ALGORITHM", "Choice", "Chooser", "shape_of")

AUTO_ALGORITHM = "auto"

LEAST_CHUNK_BYTES = 2_048  # two packets: below that, commands and tokens cost more than they hide
CHUNKS_PER_BLOCK = 3  # some travel while others are sent
LEAST_SLOTS = 4
RING_SETS = 8  # that the reserved TCM has room for, at least
MOST_PREDICTED_RANKS = 64  # plans that hand every rank a block have p * p steps


@dataclass(frozen=True, slots=True)
class Choice:
    """What a call takes; predictions are there if it was chosen by them, the least first."""

    algorithm: Algorithm
    tuning: Tuning
    predictions: tuple[Prediction, ...] = ()

    @property
    def reason(self) -> str:
        """For people: why this one."""
        if not self.predictions:
            return f"{self.algorithm.name}: as the call says"
        times = ", ".join(
            f"{each.algorithm} {each.total_ps / PS_PER_US:.2f} us" for each in self.predictions
        )
        return f"{self.algorithm.name}: the least of {times}"


def shape_of(group: Group, machine: Machine) -> tuple[int, ...]:
    """How ranks lie: rows and columns of SIPs, or SIPs, rows, columns of cubes and PEs.

    Empty for ranks that are neither whole SIPs nor all PEs of SIPs, in order.
    """
    grid = machine.grid
    firsts = [pes[0] for pes in group.ranks]
    if len(group.ranks[0]) > 1:
        sips = [pe.sip for pe in firsts]
        columns = machine.spec.fabric.columns or len(sips)
        is_whole = sips == list(range(grid.num_sips))
        return (len(sips) // columns, columns) if is_whole else ()
    return _shape_of_pes(grid, firsts)


def _shape_of_pes(grid: Grid, pes: Sequence[PeCoord]) -> tuple[int, ...]:
    sips, rest = divmod(len(pes), grid.num_cubes_per_sip * grid.num_pes_per_cube)
    first = grid.flat(pes[0])
    if rest or [grid.flat(pe) for pe in pes] != list(range(first, first + len(pes))):
        return ()
    return (sips, grid.rows, grid.columns, grid.num_pes_per_cube) if pes[0].pe == 0 else ()


@dataclass(eq=False)
class Chooser:
    """Keeps what plans cost on a machine: that does not depend on the size of a call."""

    machine: Machine
    algorithms: Mapping[str, Algorithm]
    _profiles: dict[tuple[object, ...], Profile] = field(default_factory=dict)

    def choose(
        self,
        name: str,
        call: Call,
        group: Group,
        lanes: Sequence[int],
        shard_bytes: int,
        element_bytes: int,
        tuning: Tuning,
    ) -> Choice:
        """By name; ``auto`` takes the least prediction, of equal ones the first in the table."""
        if name != AUTO_ALGORITHM:
            algorithm = find_algorithm(name, call.operation, self.algorithms)
            return Choice(
                algorithm, self._tuned(algorithm, call, group, lanes, shard_bytes, tuning)
            )
        candidates = self._candidates(call)
        if len(candidates) == 1 or call.num_ranks == 1:
            algorithm = candidates[0]
            return Choice(
                algorithm, self._tuned(algorithm, call, group, lanes, shard_bytes, tuning)
            )
        found = []
        for each in candidates:
            tuned = self._tuned(each, call, group, lanes, shard_bytes, tuning)
            profile = self.profile(each, call, group, lanes)
            found.append(
                (profile.predict(each.name, shard_bytes, tuned.chunk_bytes, element_bytes), tuned)
            )
        found.sort(key=lambda pair: pair[0].total_ps)
        best, tuned = found[0]
        predictions = tuple(prediction for prediction, _ in found)
        return Choice(self.algorithms[best.algorithm], tuned, predictions)

    def profile(
        self, algorithm: Algorithm, call: Call, group: Group, lanes: Sequence[int]
    ) -> Profile:
        """Of the plans of these lanes; one lane of each variant stands for all."""
        key = (algorithm, call, group.ranks, tuple(lanes))
        if key not in self._profiles:
            plans = {
                lane: checked_plan(algorithm, call, place).plan
                for place, lane in enumerate(lanes[:NUM_VARIANTS])
            }
            self._profiles[key] = profile_of(self.machine, group, plans, len(lanes))
        return self._profiles[key]

    def _candidates(self, call: Call) -> list[Algorithm]:
        """Of many ranks only those that suit them, or the first if none does."""
        able = [each for each in self.algorithms.values() if call.operation in each.operations]
        if call.num_ranks <= MOST_PREDICTED_RANKS:
            return able
        return [each for each in able if each.suits_many] or able[:1]

    def _tuned(
        self,
        algorithm: Algorithm,
        call: Call,
        group: Group,
        lanes: Sequence[int],
        shard_bytes: int,
        tuning: Tuning,
    ) -> Tuning:
        """Chunks that let a block overlap with itself, slots for what is under way meanwhile."""
        plan = checked_plan(algorithm, call, 0).plan
        block_bytes = -(-shard_bytes // max(1, plan.num_blocks))
        chunk_bytes = max(LEAST_CHUNK_BYTES, -(-block_bytes // CHUNKS_PER_BLOCK))
        slots = self._slots(group, lanes, tuning, block_bytes, len(plan.peers(0)))
        return replace(
            tuning,
            chunk_bytes=min(tuning.chunk_bytes, chunk_bytes),
            ring=replace(tuning.ring, slots=max(tuning.ring.slots, slots)),
        )

    def _slots(
        self,
        group: Group,
        lanes: Sequence[int],
        tuning: Tuning,
        block_bytes: int,
        num_peers: int,
    ) -> int:
        """Bandwidth times delay of the way to the next rank and back, shared by all lanes.

        No more than a block, and than leaves room for the rings of other algorithms.
        """
        if group.size == 1 or not lanes:
            return LEAST_SLOTS
        pes = group.ranks[0][lanes[0]], group.ranks[1][lanes[0]]
        links = [self.machine.links[link] for link, _ in path_of(self.machine, *pes)]
        round_trip_ps = 2 * message_ps(self.machine, *pes)
        in_flight = min(link.bytes_per_us for link in links) * round_trip_ps // PS_PER_US
        in_flight *= 2  # a slot is also held while it is filled and read
        wanted_bytes = min(-(-in_flight // len(lanes)), block_bytes)
        room_bytes = self.machine.spec.pe.tcm.reserved_bytes // (RING_SETS * max(1, num_peers))
        slots = -(-wanted_bytes // tuning.ring.slot_bytes)
        power = 1 << max(0, slots - 1).bit_length()  # few sizes: rings are kept and used again
        return max(LEAST_SLOTS, min(power, room_bytes // tuning.ring.slot_bytes))
