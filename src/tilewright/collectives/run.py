"""One rank's part of a collective: from tensors that are placed alike to a launch on its PEs."""

from collections.abc import Iterable, Mapping, Sequence

from tilewright.collectives.algorithm import NUM_VARIANTS, checked_plan
from tilewright.collectives.buffers import Buffers, Piece, Pieces
from tilewright.collectives.choose import Choice
from tilewright.collectives.group import Group
from tilewright.collectives.kernel import collective
from tilewright.collectives.operation import Call, Reduction, message_dtype
from tilewright.collectives.rings import Edge, RingBook
from tilewright.collectives.schedule import Job, build_schedule
from tilewright.collectives.staging import LaneShare, shares_of
from tilewright.errors import InternalError
from tilewright.language.kernel import ArrayArgument
from tilewright.machine.coords import PeCoord
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.bind import LaunchOptions, LaunchOwner, PerPe
from tilewright.runtime.launch.launch import Pending, launch

Shares = dict[int, LaneShare]
"""Of a piece, by lane."""


def start_collective(
    driver: Driver,
    owner: LaunchOwner,
    book: RingBook,
    group: Group,
    rank: int,
    call: Call,
    choice: Choice,
    buffers: Buffers,
    reduction: Reduction = Reduction.SUM,
    lanes: frozenset[int] | None = None,
    *,
    carries_data: bool,
) -> Pending:
    """Launch a rank's programs, on some lanes or all; they meet those of other ranks at rings."""
    tuning = choice.tuning
    lanes = frozenset(range(len(group.ranks[rank]))) if lanes is None else lanes
    shares = {piece: _by_lane(group, rank, piece, lanes) for piece in buffers.pieces}
    variants = _variants(call, shares.values())
    plans = {each: checked_plan(choice.algorithm, call, each) for each in set(variants.values())}
    edges = frozenset[Edge]().union(*(checked.plan.edges for checked in plans.values()))
    lane_of = {group.ranks[rank][lane]: lane for lane in variants}
    element_bits = message_dtype(call.operation, reduction, buffers.dtype).bits
    round_elements = tuning.round_bytes * 8 // element_bits  # which may be as wide as sums
    jobs = {
        pe: Job(
            build_schedule(
                plans[variants[lane]].plan,
                rank,
                _sizes(call, buffers, shares, lane),
                chunk_elements=max(1, tuning.chunk_bytes * 8 // element_bits),
                round_elements=None if call.is_uneven else max(1, round_elements),
                proof=plans[variants[lane]].proof,
                lead=tuning.lead,
                window=driver.machine.spec.pe.queue_commands,
            ),
            _starts(buffers.sources, shares, lane),
            _starts(buffers.targets, shares, lane),
        )
        for pe, lane in lane_of.items()
    }
    # what an all-to-all exchanges is known to pairs alone, so all know the rings of all lanes
    ring_lanes = sorted(lanes) if call.is_uneven else variants
    post = book.rings(group, edges, tuple(ring_lanes), tuning.ring, rank) if edges else None
    options = LaunchOptions(
        name=f"{call.operation.value} of rank {group.world_ranks[rank]}",
        on=tuple(jobs),
        neighbours=post,
        carries_data=carries_data,
    )
    sources, targets = (
        tuple(_argument(piece, lane_of) for piece in pieces)
        for pieces in (buffers.sources, buffers.targets)
    )
    arguments = (sources, targets, PerPe(jobs), reduction.value, call.num_ranks)
    pending = launch(driver, owner, collective, arguments, {}, options)
    if post is not None:
        book.note_launch(post, pending)
    return pending


def _by_lane(group: Group, rank: int, piece: Piece, lanes: frozenset[int]) -> Shares:
    shares = shares_of(group, rank, piece)
    if shares is None:
        found = f"{piece} of rank {rank}, which is not in shards"
        raise InternalError("collective", found, "a staged piece", "stage it")
    return {share.lane: share for share in shares if share.size and share.lane in lanes}


def _variants(call: Call, shares: Iterable[Shares]) -> dict[int, int]:
    """By lane: lanes take turns in the variants of a plan; copies have one, to stay equal."""
    boxes = {lane: share.box for by_lane in shares for lane, share in by_lane.items()}
    if call.is_uneven:
        return {lane: lane % NUM_VARIANTS for lane in sorted(boxes)}
    places = {box: place for place, box in enumerate(dict.fromkeys(boxes.values()))}
    return {lane: places[box] % NUM_VARIANTS for lane, box in sorted(boxes.items())}


def _sizes(
    call: Call, buffers: Buffers, shares: Mapping[Piece, Shares], lane: int
) -> Sequence[int]:
    """Elements of each part in a lane; a part that the rank does not have is as long as others."""
    sizes = {
        part: shares[piece][lane].size if lane in shares[piece] else 0
        for part, piece in buffers.by_part()
    }
    other = 0 if call.is_uneven else max(sizes.values())
    return [sizes.get(part, other) for part in range(buffers.num_parts)]


def _starts(pieces: Pieces, shares: Mapping[Piece, Shares], lane: int) -> tuple[int, ...]:
    return tuple(
        shares[piece][lane].start if piece is not None and lane in shares[piece] else 0
        for piece in pieces
    )


def _argument(piece: Piece | None, pes: Iterable[PeCoord]) -> PerPe | None:
    """The PE's shard of a piece; None on a PE that has none."""
    if piece is None:
        return None
    tensor = piece.tensor
    return PerPe(
        {
            pe: ArrayArgument(tensor.address + tensor.placement.local_offset(pe), tensor.dtype)
            if tensor.placement.has_shard(pe)
            else None
            for pe in pes
        }
    )
