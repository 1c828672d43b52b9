"""One all-reduce without values, beside what it takes on paper."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tilewright.collectives.buffers import Buffers, as_one
from tilewright.collectives.choose import Chooser, shape_of
from tilewright.collectives.cost import path_of
from tilewright.collectives.critical import Prediction
from tilewright.collectives.group import Group, RankPlaces, sip_ranks
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.rings import RingBook
from tilewright.collectives.run import Tuning, start_collective
from tilewright.collectives.staging import targets_of
from tilewright.collectives.table import ALGORITHMS
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.host import DPPolicy, RuntimeContext, Split
from tilewright.language.dtype import float32
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.records.collectives_bench import CollectiveRow
from tilewright.runtime.deployment import Deployments
from tilewright.units import PS_PER_US

__all__ = ("CollectiveCase", "Measured", "run_case")

SPREAD = DPPolicy(cube=Split(0), pe=Split(0))
WHOLE_BYTES = 1 << 40  # chunks that no block is larger than
ROUND_BYTES = 2**20  # of blocks that are not cut: twice the registers of a PE


@dataclass(frozen=True, slots=True)
class CollectiveCase:
    """An all-reduce of f32; ``pes`` are the ranks, or every SIP is one."""

    machine: str
    num_bytes: int  # of the tensor of a rank
    algorithm: str = "auto"
    overrides: tuple[str, ...] = ()
    pes: tuple[RankPlaces, ...] = ()
    buffer: RingKind = RingKind.TCM
    in_one_chunk: bool = False
    topology: str = field(default="")


@dataclass(frozen=True, slots=True)
class Measured:
    """A row and what the summary needs beside it."""

    row: CollectiveRow
    prediction: Prediction
    events: int


def run_case(case: CollectiveCase) -> Measured:
    """On a machine of its own; times are from the first start of a program to the last end."""
    machine = build_machine(parse_machine(case.machine, case.overrides))
    places = case.pes or sip_ranks(machine.grid, machine.grid.num_sips)
    group = Group("bench", places, tuple(range(len(places))))
    call = Call(Operation.ALL_REDUCE, group.size, shape=shape_of(group, machine))
    lanes = range(len(places[0]))
    shard_bytes = -(-case.num_bytes // len(lanes))
    chooser = Chooser(machine, ALGORITHMS)
    in_one = Tuning(RingSpec(case.buffer), WHOLE_BYTES, 1, ROUND_BYTES)
    asked = in_one if case.in_one_chunk else Tuning(RingSpec(case.buffer))
    choice = chooser.choose(case.algorithm, call, group, lanes, shard_bytes, 4, asked)
    tuning = choice.tuning
    prediction = chooser.predict(
        choice.algorithm,
        call,
        group,
        lanes,
        (shard_bytes, 4),
        replace(tuning, chunk_bytes=WHOLE_BYTES),
    )
    with RuntimeContext(machine, data=False) as torch:
        owner = Deployments(torch.driver, torch._targets, carries_data=False)
        book = RingBook(torch.driver)
        events = torch.driver.device.engine.statistics().events
        tensors = [
            owner.empty((case.num_bytes // 4,), float32, dp=SPREAD, targets=targets_of(pes))
            for pes in places
        ]
        pending = [
            start_collective(
                torch.driver, owner, book, group, rank, call, choice.algorithm,
                Buffers((as_one(tensor),), (as_one(tensor),)), "sum", tuning, carries_data=False,
            )
            for rank, tensor in enumerate(tensors)
        ]  # fmt: skip
        for each in pending:
            each.wait()
        events = torch.driver.device.engine.statistics().events - events
        reports = [each.report for each in pending]
    latency_ps = max(report.last_end_ps for report in reports) - min(
        report.first_start_ps for report in reports
    )
    sent = Fraction(2 * (group.size - 1) * case.num_bytes, group.size)
    row = CollectiveRow(
        operation=call.operation.value,
        algorithm=choice.algorithm.name,
        topology=case.topology or f"{case.machine}",
        ranks=group.size,
        bytes=case.num_bytes,
        buffer=case.buffer.value,
        latency_ps=latency_ps,
        alpha_beta_ps=max(1, prediction.total_ps),
        bound_ps=int(sent * PS_PER_US / _leaving_bytes_per_us(machine, places)),
        busbw_gbs=float(sent / latency_ps * 1000),
    )
    return Measured(row, prediction, events)


def _leaving_bytes_per_us(machine: Machine, places: Sequence[RankPlaces]) -> int:
    """What the links of a rank can send: those of its SIP, or the narrowest on a PE's way."""
    fabric = machine.spec.fabric
    if len(places[0]) > 1:
        return fabric.links * fabric.bytes_per_us
    links = path_of(machine, places[0][0], places[1][0])
    return min(machine.links[link].bytes_per_us for link, _ in links)
