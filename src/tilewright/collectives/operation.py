"""The operations that plans carry out: what ranks hold before, and what they must hold after.

The buffer of an operation is cut into blocks, a multiple of the number of ranks. Where ranks have
parts of it, the parts are equal and in the order of ranks. The buffer of an all-to-all has a part
for each pair: part ``sender * ranks + receiver``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from tilewright.collectives.plan import Contribution, Goal


class Operation(Enum):
    """By the names of torch.distributed."""

    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_GATHER = "all_gather"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALL_TO_ALL = "all_to_all"
    GATHER = "gather"
    SCATTER = "scatter"

    @property
    def combines(self) -> bool:
        """Whether values of several ranks are reduced."""
        return self in (Operation.ALL_REDUCE, Operation.REDUCE_SCATTER, Operation.REDUCE)

    @property
    def has_root(self) -> bool:
        """Whether one rank has a part of its own in it."""
        rooted = (Operation.BROADCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER)
        return self in rooted


@dataclass(frozen=True, slots=True)
class Call:
    """An operation of a group; ``root`` is of those that have one.

    ``shape`` counts the levels that ranks go through, outermost first; empty if nobody knows.
    ``is_open``: the last of a row or column is not next to the first.
    """

    operation: Operation
    num_ranks: int
    root: int = 0
    shape: tuple[int, ...] = ()
    is_open: bool = False
    word: str = field(default="", compare=False)  # of users, where it is not the operation's

    @property
    def name(self) -> str:
        """How users know it."""
        return self.word or self.operation.value

    @property
    def is_uneven(self) -> bool:
        """Whether parts may have different sizes, each known to its two ranks alone."""
        return self.operation is Operation.ALL_TO_ALL


Held = dict[tuple[int, int], Contribution]


def start_of(call: Call, num_blocks: int) -> Held:
    """By rank and block: whose values it holds before."""
    match call.operation:
        case Operation.ALL_REDUCE | Operation.REDUCE_SCATTER | Operation.REDUCE:
            return _everywhere(call, num_blocks)
        case Operation.ALL_GATHER | Operation.GATHER:
            return {
                (rank, block): frozenset((rank,))
                for rank in range(call.num_ranks)
                for block in _part(rank, call.num_ranks, num_blocks)
            }
        case Operation.BROADCAST | Operation.SCATTER:
            return {(call.root, block): frozenset((call.root,)) for block in range(num_blocks)}
        case Operation.ALL_TO_ALL:
            return dict(_pairs(call, num_blocks, of_sender=True))


def goal_of(call: Call, num_blocks: int) -> Goal:
    """By rank and block: whose values it must hold after."""
    ranks = range(call.num_ranks)
    everybody = frozenset(ranks)
    blocks = range(num_blocks)
    match call.operation:
        case Operation.ALL_REDUCE:
            return {(rank, block): everybody for rank in ranks for block in blocks}
        case Operation.REDUCE_SCATTER:
            return {
                (rank, block): everybody
                for rank in ranks
                for block in _part(rank, call.num_ranks, num_blocks)
            }
        case Operation.REDUCE:
            return {(call.root, block): everybody for block in blocks}
        case Operation.ALL_GATHER:
            return {
                (rank, block): frozenset((owner,))
                for rank in ranks
                for owner in ranks
                for block in _part(owner, call.num_ranks, num_blocks)
            }
        case Operation.GATHER:
            return {
                (call.root, block): frozenset((owner,))
                for owner in ranks
                for block in _part(owner, call.num_ranks, num_blocks)
            }
        case Operation.BROADCAST:
            return {(rank, block): frozenset((call.root,)) for rank in ranks for block in blocks}
        case Operation.SCATTER:
            return {
                (rank, block): frozenset((call.root,))
                for rank in ranks
                for block in _part(rank, call.num_ranks, num_blocks)
            }
        case Operation.ALL_TO_ALL:
            return dict(_pairs(call, num_blocks, of_sender=False))


def _everywhere(call: Call, num_blocks: int) -> Held:
    return {
        (rank, block): frozenset((rank,))
        for rank in range(call.num_ranks)
        for block in range(num_blocks)
    }


def _part(number: int, num_parts: int, num_blocks: int) -> range:
    """The blocks of one of the parts of a buffer."""
    size = num_blocks // num_parts
    return range(number * size, (number + 1) * size)


def _pairs(
    call: Call, num_blocks: int, *, of_sender: bool
) -> Iterator[tuple[tuple[int, int], Contribution]]:
    ranks = call.num_ranks
    for sender in range(ranks):
        for receiver in range(ranks):
            for block in _part(sender * ranks + receiver, ranks * ranks, num_blocks):
                yield (sender if of_sender else receiver, block), frozenset((sender,))
