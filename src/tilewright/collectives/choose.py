"""Which algorithm a call takes, with which chunks and slots, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from tilewright.collectives.algorithm import AUTO_ALGORITHM, NUM_VARIANTS, Algorithm, checked_plan
from tilewright.collectives.algorithms import find_algorithm
from tilewright.collectives.cost import LanePlan, lane_plans, message_ps, way_of
from tilewright.collectives.critical import Prediction, predict
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call
from tilewright.collectives.plan import Plan
from tilewright.collectives.tuning import NOTHING_SAID, RingOptions, Tuning, TuningSpec, tune
from tilewright.device.ipcq import RingSpec
from tilewright.machine.build import Machine
from tilewright.units import PS_PER_US

MOST_PREDICTED_RANKS = 64  # plans that hand every rank a block have p * p steps
MARGIN = Fraction(1, 10)  # of predictions that count as equal where links decide


@dataclass(frozen=True, slots=True, eq=False)
class LaneCall:
    """A call on some lanes of a group, with the bytes of a lane's shard and of an element."""

    call: Call
    group: Group
    lanes: Sequence[int]
    shard_bytes: int
    element_bytes: int

    def key(self, algorithm: Algorithm) -> tuple[object, ...]:
        """Return what a plan of the algorithm depends on; the size of the call is not in it."""
        return algorithm, self.call, self.group.ranks, tuple(self.lanes)


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
        if self.predictions[0].algorithm == self.algorithm.name:
            return f"{self.algorithm.name}: the least of {times}"
        return f"{self.algorithm.name}: the fewest receivers of those within a tenth, of {times}"


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
    num_sips, rest = divmod(len(firsts), grid.num_cubes_per_sip * grid.num_pes_per_cube)
    first = grid.flat(firsts[0])
    is_run = [grid.flat(pe) for pe in firsts] == list(range(first, first + len(firsts)))
    is_whole = is_run and not rest and firsts[0].pe == 0
    return (num_sips, grid.rows, grid.columns, grid.num_pes_per_cube) if is_whole else ()


def placed_call(call: Call, group: Group, machine: Machine) -> Call:
    """The call with how its ranks lie."""
    shape = shape_of(group, machine)
    is_open = len(shape) == 2 and machine.spec.fabric.kind == "mesh"
    return replace(call, shape=shape, is_open=is_open)


@dataclass(eq=False)
class Chooser:
    """Keeps what plans cost on a machine: that does not depend on the size of a call."""

    machine: Machine
    algorithms: Mapping[str, Algorithm]
    ring: RingOptions = NOTHING_SAID
    rings: Mapping[str, RingOptions] = field(default_factory=dict)  # of some algorithms instead
    _lanes: dict[tuple[object, ...], list[LanePlan]] = field(default_factory=dict)
    _predictions: dict[tuple[object, ...], Prediction] = field(default_factory=dict)
    _flights: dict[tuple[object, ...], int] = field(default_factory=dict)

    def choose(self, name: str, on: LaneCall, asked: TuningSpec) -> Choice:
        """By name; ``auto`` takes the least prediction, of equal ones the first in the table.

        Where links decide, a tenth more is equal, too, and the one is taken whose ranks send to the
        fewest others: predictions do not count how lanes that take turns with several receivers get
        in each other's way.
        """
        if name == AUTO_ALGORITHM:
            candidates = self._candidates(on.call)[: 1 if on.call.num_ranks == 1 else None]
        else:
            candidates = [find_algorithm(name, on.call.operation, self.algorithms)]
        tuned = [(each, self._tuned(each, on, asked)) for each in candidates]
        if len(tuned) == 1:
            return Choice(*tuned[0])
        found = [(self.predict(each, on, tuning), each, tuning) for each, tuning in tuned]
        found.sort(key=lambda one: one[0].total_ps)
        predictions = tuple(prediction for prediction, _, _ in found)
        least, num_equal = predictions[0], 1
        if 2 * least.beta_ps >= least.total_ps:  # links decide
            most_ps = (1 + MARGIN) * least.total_ps
            num_equal = sum(each.total_ps <= most_ps for each in predictions)
        rivals = found[:num_equal]
        _, algorithm, tuning = min(
            rivals, key=lambda one: checked_plan(one[1], on.call, 0).plan.most_receivers
        )
        return Choice(algorithm, tuning, predictions)

    def predict(self, algorithm: Algorithm, on: LaneCall, tuning: Tuning) -> Prediction:
        """Predict the time of an algorithm that runs with a tuning."""
        sizes = on.shard_bytes, on.element_bytes
        key = (*on.key(algorithm), sizes, tuning)
        if key not in self._predictions:
            plans = self._lane_plans(algorithm, on, tuning.ring)
            self._predictions[key] = predict(algorithm.name, plans, *sizes, tuning)
        return self._predictions[key]

    def _lane_plans(self, algorithm: Algorithm, on: LaneCall, ring: RingSpec) -> list[LanePlan]:
        key = (*on.key(algorithm), ring.slot_bytes, ring.token_bytes)
        if key not in self._lanes:
            plans = {
                lane: checked_plan(algorithm, on.call, place % NUM_VARIANTS).plan
                for place, lane in enumerate(on.lanes)
            }
            self._lanes[key] = lane_plans(self.machine, on.group, plans, ring)
        return self._lanes[key]

    def _candidates(self, call: Call) -> list[Algorithm]:
        """Of many ranks only those that suit them, or the first if none does."""
        able = [each for each in self.algorithms.values() if call.operation in each.operations]
        if call.num_ranks <= MOST_PREDICTED_RANKS:
            return able
        return [each for each in able if each.suits_many] or able[:1]

    def _tuned(self, algorithm: Algorithm, on: LaneCall, asked: TuningSpec) -> Tuning:
        plan = checked_plan(algorithm, on.call, 0).plan
        ring = asked.ring.over(self.rings.get(algorithm.name, self.ring))
        key = on.key(algorithm)
        if key not in self._flights:
            self._flights[key] = self._in_flight(on, plan)
        return tune(
            replace(asked, ring=ring), plan, on.shard_bytes, self._flights[key],
            self.machine.spec.pe.tcm, is_uneven=on.call.is_uneven,
        )  # fmt: skip

    def _in_flight(self, on: LaneCall, plan: Plan) -> int:
        """Bytes of a lane: bandwidth times delay of the longest way there and back.

        Twice that: a slot is also held while it is filled and read. Lanes of SIPs share all links
        between these.
        """
        lanes, ranks = on.lanes, on.group.ranks
        lane = lanes[0] if lanes else 0
        num_links = min(len(lanes), self.machine.spec.fabric.links) if lanes else 1
        pairs = {(rank, peer) for rank in range(len(ranks)) for peer in plan.peers(rank)}
        ways = [(ranks[rank][lane], ranks[peer][lane]) for rank, peer in pairs]
        flights = [
            4 * message_ps(self.machine, *pes) / way_of(self.machine, *pes).byte for pes in ways
        ]
        return ceil(max(flights, default=0) * num_links / max(1, len(lanes)))
