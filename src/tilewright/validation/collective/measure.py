"""One collective without values, beside what it takes on paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile

from tilewright.analysis.phases import sample_phases
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.buffers import Buffers, Piece, only_at, pairs_of
from tilewright.collectives.choose import Choice, Chooser, LaneCall, placed_call
from tilewright.collectives.cost import way_of
from tilewright.collectives.critical import Prediction
from tilewright.collectives.group import Group, RankPlaces, sip_ranks, targets_of
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.rings import RingBook
from tilewright.collectives.run import start_collective
from tilewright.collectives.tuning import RingOptions, TuningSpec
from tilewright.device.ipcq import RingKind
from tilewright.device.least_time import fabric_ps
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import BenchError
from tilewright.host import DPPolicy, RuntimeContext, Split
from tilewright.language.dtype import float32
from tilewright.machine.build import Machine, shift_refresh
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.programs.bound import Bound, Path, Work, bound_of
from tilewright.records.bench import CollectiveRow
from tilewright.runtime.deployment import Deployments
from tilewright.units import PS_PER_US
from tilewright.validation.engine_run import machine_named

SPREAD = DPPolicy(cube=Split(0), pe=Split(0))
ELEMENT_BYTES = 4
WHOLE_BYTES = 1 << 40  # chunks that no block is larger than


@dataclass(frozen=True, slots=True)
class CollectiveCase:
    """A collective of f32; ``pes`` are the ranks, or every SIP is one."""

    machine: str
    num_bytes: int  # of the whole buffer at a rank
    algorithm: str = "auto"
    overrides: tuple[str, ...] = ()
    pes: tuple[RankPlaces, ...] = ()
    buffer: RingKind = RingKind.TCM
    in_one_chunk: bool = False
    slot_bytes: int | None = None  # None: as calls choose
    round_bytes: int = 2**20  # of blocks that are not cut: twice the registers of a PE
    topology: str = ""
    series: str = ""
    operation: Operation = Operation.ALL_REDUCE
    engine: EngineKind | Auto = AUTO
    phases: int | None = 1  # of refresh; None: by the rule of ADR 0029


@dataclass(frozen=True, slots=True)
class Measured:
    """A row and what the summary needs beside it."""

    row: CollectiveRow
    prediction: Prediction
    events: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a run left: its time, what it cost the simulator, its busiest link, its PEs."""

    latency_ps: int
    events: int
    link: str
    link_ps: int
    pes: list[RankPlaces]  # of each rank, that took part


def bus_factor(operation: Operation, num_ranks: int) -> Fraction:
    """What leaves a rank at least, of its buffer: the bus bandwidth counts that.

    >>> bus_factor(Operation.ALL_REDUCE, 4)
    Fraction(3, 2)
    """
    others = Fraction(num_ranks - 1, num_ranks)
    match operation:
        case Operation.ALL_REDUCE:
            return 2 * others
        case Operation.BROADCAST | Operation.REDUCE:
            return Fraction(1)
        case _:
            return others


def machine_of(case: CollectiveCase) -> Machine:
    """Return the machine of a case; cases of one machine share what is known of its routes."""
    return machine_named(case.machine, *case.overrides)


def run_case(case: CollectiveCase) -> Measured:
    """On a device of its own; times are from the first start of a program to the last end."""
    machine = machine_of(case)
    places = case.pes or sip_ranks(machine.grid, machine.grid.num_sips)
    group = Group("bench", places, tuple(range(len(places))))
    call = placed_call(Call(case.operation, group.size), group, machine)
    lanes = range(len(places[0]))
    on = LaneCall(call, group, lanes, -(-case.num_bytes // len(lanes)), ELEMENT_BYTES)
    chooser = Chooser(machine, ALGORITHMS)
    ring = RingOptions(case.buffer, slot_size=case.slot_bytes)
    in_one = TuningSpec(ring, WHOLE_BYTES, 1, case.round_bytes)
    asked = in_one if case.in_one_chunk else TuningSpec(ring)
    choice = chooser.choose(case.algorithm, on, asked)
    paper = chooser.choose(choice.algorithm.name, on, in_one).tuning
    prediction = chooser.predict(choice.algorithm, on, paper)
    found = _run(case, machine, group, call, choice)

    def latency_of(shift_ps: int) -> int:
        return _run(case, shift_refresh(machine, shift_ps), group, call, choice).latency_ps

    spread = sample_phases(machine.spec, case.phases, found.latency_ps, latency_of)
    mean_ps = found.latency_ps if spread is None else spread.mean_ps
    sent = bus_factor(case.operation, group.size) * case.num_bytes
    bound = _bound(case, machine, found.pes, sent)
    row = CollectiveRow(
        series=case.series,
        operation=call.operation.value,
        algorithm=choice.algorithm.name,
        topology=case.topology or case.machine,
        ranks=group.size,
        bytes=case.num_bytes,
        buffer=case.buffer.value,
        latency_ps=found.latency_ps,
        phases=spread,
        alpha_beta_ps=max(1, prediction.total_ps),
        bound_ps=bound.total_ps,
        bound_latency_ps=bound.latency_ps,
        ratio=mean_ps / bound.total_ps,
        algbw_gbs=case.num_bytes / mean_ps * 1000,
        busbw_gbs=float(sent) / mean_ps * 1000,
        bottleneck=found.link,
        bottleneck_share=found.link_ps / found.latency_ps,
    )
    return Measured(row, prediction, found.events)


def _run(
    case: CollectiveCase, machine: Machine, group: Group, call: Call, choice: Choice
) -> _Outcome:
    with RuntimeContext(machine, data=False, engine=case.engine) as torch:
        device = torch.driver.device
        owner = Deployments(torch.driver, torch._targets, carries_data=False)
        book = RingBook(torch.driver)
        buffers = [_buffers(owner, group, rank, call, case.num_bytes) for rank in range(group.size)]
        before = device.engine.statistics()
        pending = [
            start_collective(
                torch.driver, owner, book, group, rank, call, choice, of_rank, carries_data=False
            )
            for rank, of_rank in enumerate(buffers)
        ]  # fmt: skip
        reports = [each.wait() for each in pending]
        after = device.engine.statistics()
    busy = {
        server: after.servers[server].busy_ps - before.servers[server].busy_ps
        for server in device.links.values()
    }
    link = max(busy, key=lambda server: busy[server])
    first_ps = min(report.first_start_ps for report in reports)
    latency_ps = max(report.last_end_ps for report in reports) - first_ps
    events = after.events - before.events
    pes = [report.pes for report in reports]
    return _Outcome(latency_ps, events, after.servers[link].name, busy[link], pes)


def _buffers(owner: Deployments, group: Group, rank: int, call: Call, num_bytes: int) -> Buffers:
    """Tensors that are spread over the PEs of a rank."""
    ranks, elements = group.size, num_bytes // ELEMENT_BYTES
    part = elements // ranks
    targets = targets_of(group.ranks[rank])

    def pieces(count: int, size: int) -> tuple[Piece, ...]:
        return tuple(
            Piece(owner.empty((size,), float32, dp=SPREAD, targets=targets)) for _ in range(count)
        )

    match call.operation:
        case Operation.ALL_REDUCE:
            whole = pieces(1, elements)
            return Buffers(whole, whole)
        case Operation.REDUCE_SCATTER:
            (own,) = pieces(1, part)
            return Buffers(pieces(ranks, part), only_at(rank, own, ranks))
        case Operation.ALL_GATHER:
            (own,) = pieces(1, part)
            return Buffers(only_at(rank, own, ranks), pieces(ranks, part))
        case Operation.ALL_TO_ALL:
            return pairs_of(rank, pieces(ranks, part), pieces(ranks, part))
        case Operation.BROADCAST:
            whole = pieces(1, elements)
            return Buffers(whole, (None,)) if rank == call.root else Buffers((None,), whole)
        case _:
            found = f"the operation {call.operation.value}"
            raise BenchError("collectives", found, "one that is measured", "name another")


def _bound(
    case: CollectiveCase, machine: Machine, places: Sequence[RankPlaces], sent: Fraction
) -> Bound:
    """Bound the time from the first start of a program to the last end.

    What any rank has in the end depends on what the first has, PE by PE, and that is loaded, sent
    and stored. The last PE of a SIP is the farthest from other SIPs.
    """
    pes = tuple(pe for place in places for pe in place)
    last = [max(place) for place in places]
    combines = case.operation in (Operation.ALL_REDUCE, Operation.REDUCE_SCATTER)
    opens, messages = case.buffer is not RingKind.HBM, tuple((last[0], pe) for pe in last[1:])
    path = Path(
        pes=pes, commands=0, computes=combines, opens=opens, all_store=False, messages=messages
    )
    num_bytes = case.num_bytes  # that are read by all ranks together, and written
    work = Work(num_pes=len(pes), read_bytes=num_bytes, written_bytes=num_bytes)
    is_single = bool(case.pes) and len(case.pes[0]) == 1
    sent_ps = int(sent * PS_PER_US / _leaving_bytes_per_us(machine, places, is_single=is_single))
    behind_ps = 0 if is_single else fabric_ps(machine)
    return bound_of(machine, work, path, {"links": (sent_ps, behind_ps)})


def _leaving_bytes_per_us(
    machine: Machine, places: Sequence[RankPlaces], *, is_single: bool
) -> Fraction:
    """What a rank can send: the mean of what leaves SIPs, or the narrowest that all ways of its PE
    have in common.

    Over all ranks every element but the last sum is sent twice, wherever it is combined.
    """
    links = machine.links
    if not is_single:
        leaving = [
            link.bytes_per_us
            for link in links
            if link.kind is LinkKind.FABRIC and machine.nodes[link.src].kind is not NodeKind.SWITCH
        ]
        return Fraction(sum(leaving), len(places))
    ways = [way_of(machine, places[0][0], peer[0]).links for peer in places[1:]]
    shared = takewhile(lambda at: len(set(at)) == 1, zip(*ways, strict=False))
    return Fraction(min(links[at[0]].bytes_per_us for at in shared))
