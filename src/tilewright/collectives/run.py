"""One rank's part of a collective: from tensors that are placed alike to a launch on its PEs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.collectives.group import Group
from tilewright.collectives.kernel import collective
from tilewright.collectives.operation import Call
from tilewright.collectives.plan import Move
from tilewright.collectives.rings import RingBook
from tilewright.collectives.schedule import Schedule, build_schedule
from tilewright.collectives.table import Algorithm, CheckedPlan, checked_plan
from tilewright.device.ipcq import RingSpec
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch import LaunchOptions, launch
from tilewright.runtime.launch_arguments import LocalShard, PerPe
from tilewright.runtime.pending import Pending
from tilewright.runtime.tensor import Tensor, TensorOwner

__all__ = ("Buffers", "Tuning", "lane_parts", "start_collective")


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a collective uses the machine."""

    ring: RingSpec = field(default_factory=RingSpec)
    chunk_bytes: int = 16_384  # of a message
    round_bytes: int = 2**21  # that a program holds at a time


@dataclass(frozen=True, slots=True)
class Buffers:
    """The parts of an operation's buffer at one rank; None for a part that it does not have."""

    sources: tuple[Tensor | None, ...]
    targets: tuple[Tensor | None, ...]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in (*self.sources, *self.targets) if tensor is not None)

    @property
    def num_parts(self) -> int:
        return len(self.sources)


def lane_parts(group: Group, rank: int, tensor: Tensor) -> tuple[tuple[int, int, int], ...]:
    """By lane: where its shard begins in the tensor, and its elements. Equal for ranks alike."""
    places = group.ranks[rank]
    placement = tensor.placement
    return tuple(
        (lane, placement.local_offset(pe), prod(placement.local_shape(pe)))
        for lane, pe in enumerate(places)
        if placement.has_shard(pe)
    )


def start_collective(
    driver: Driver,
    owner: TensorOwner,
    book: RingBook,
    group: Group,
    rank: int,
    call: Call,
    algorithm: Algorithm,
    buffers: Buffers,
    reduction: str,
    tuning: Tuning,
    *,
    carries_data: bool,
) -> Pending:
    """Launch a rank's programs; they meet those of the other ranks at the rings."""
    parts = lane_parts(group, rank, buffers.tensors[0])
    variants = _variants(parts)
    plans = {variant: checked_plan(algorithm, call, variant) for variant in set(variants.values())}
    edges = frozenset(_edges(plans.values()))
    lanes = tuple(sorted(variants))
    pes = [group.ranks[rank][lane] for lane in lanes]
    schedules = {
        group.ranks[rank][lane]: _schedule(
            plans[variants[lane]], rank, [size] * buffers.num_parts, buffers, tuning
        )
        for lane, _, size in parts
    }
    options = LaunchOptions(
        name=f"{call.operation.value} of rank {group.world_ranks[rank]}",
        on=pes,
        neighbours=book.rings(group, edges, lanes, tuning.ring) if edges else None,
        carries_data=carries_data,
        keeps_copies_equal=True,
    )
    arguments = (
        tuple(map(_argument, buffers.sources)),
        tuple(map(_argument, buffers.targets)),
        PerPe(schedules),
        reduction,
        call.num_ranks,
    )
    return launch(driver, owner, collective, arguments, {}, options)


def _variants(parts: Sequence[tuple[int, int, int]]) -> dict[int, int]:
    """Lanes take turns in the variants of a plan; copies have one, so that they stay equal."""
    places = {offset: place for place, offset in enumerate(dict.fromkeys(p[1] for p in parts))}
    return {lane: places[offset] % NUM_VARIANTS for lane, offset, _ in parts}


NUM_VARIANTS = 4


def _edges(plans: Iterable[CheckedPlan]) -> Iterator[tuple[int, int]]:
    for checked in plans:
        for rank, steps in enumerate(checked.plan.steps):
            for step in steps:
                if step.move is Move.SEND:
                    yield rank, step.peer


def _schedule(
    checked: CheckedPlan, rank: int, sizes: list[int], buffers: Buffers, tuning: Tuning
) -> Schedule:
    bits = buffers.tensors[0].dtype.bits
    return build_schedule(
        checked.plan,
        rank,
        sizes,
        chunk_elements=max(1, tuning.chunk_bytes * 8 // bits),
        round_elements=max(1, tuning.round_bytes * 8 // bits),
        completing=checked.completing,
    )


def _argument(tensor: Tensor | None) -> LocalShard | None:
    return None if tensor is None else LocalShard(tensor)
