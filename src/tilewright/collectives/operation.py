"""Collective operations: what ranks hold before and after, how their values are reduced.

The buffer of an operation is cut into blocks, a multiple of the number of ranks. Where ranks have
parts of it, the parts are equal and in the order of ranks. The buffer of an all-to-all has a part
for each pair: part ``sender * ranks + receiver``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from itertools import product

from tilewright.collectives.plan import Contribution, Goal
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DType, float32


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
        return _ENDS[self][0] is _End.ALL

    @property
    def has_root(self) -> bool:
        """Whether one rank has a part of its own in it."""
        return _End.ROOT in _ENDS[self]


class _End(Enum):
    """The ranks that have a block before an operation, or after it."""

    ALL = auto()
    ROOT = auto()
    OWNER = auto()  # the rank whose part has the block
    SENDER = auto()  # the first rank of the pair whose part has the block
    RECEIVER = auto()  # the second one


_ENDS = {
    Operation.ALL_REDUCE: (_End.ALL, _End.ALL),
    Operation.REDUCE_SCATTER: (_End.ALL, _End.OWNER),
    Operation.REDUCE: (_End.ALL, _End.ROOT),
    Operation.ALL_GATHER: (_End.OWNER, _End.ALL),
    Operation.GATHER: (_End.OWNER, _End.ROOT),
    Operation.BROADCAST: (_End.ROOT, _End.ALL),
    Operation.SCATTER: (_End.ROOT, _End.OWNER),
    Operation.ALL_TO_ALL: (_End.SENDER, _End.RECEIVER),
}


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
    """Return by rank and block whose values it holds before: its own."""
    before, _ = _ENDS[call.operation]
    return {place: frozenset(place[:1]) for place in _places(before, call, num_blocks)}


def goal_of(call: Call, num_blocks: int) -> Goal:
    """Return by rank and block whose values it must hold after."""
    before, after = _ENDS[call.operation]
    places = _places(after, call, num_blocks)
    if call.operation.combines:
        return dict.fromkeys(places, frozenset(range(call.num_ranks)))
    sent = {block: frozenset((rank,)) for rank, block in _places(before, call, num_blocks)}
    return {(rank, block): sent[block] for rank, block in places if block in sent}


def _places(end: _End, call: Call, num_blocks: int) -> list[tuple[int, int]]:
    """Return the ranks and the blocks that they have at one end of a call."""
    ranks = range(call.num_ranks)
    if end is _End.ALL:
        return list(product(ranks, range(num_blocks)))
    owners: Mapping[_End, Sequence[int]] = {
        _End.ROOT: [call.root],
        _End.OWNER: ranks,
        _End.SENDER: [sender for sender in ranks for _ in ranks],
        _End.RECEIVER: [*ranks] * call.num_ranks,
    }
    size = num_blocks // len(owners[end])
    return [
        (rank, block)
        for part, rank in enumerate(owners[end])
        for block in range(part * size, (part + 1) * size)
    ]


class Reduction(StrEnum):
    """By the names of torch.distributed.ReduceOp."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ROUNDING = frozenset((Reduction.SUM, Reduction.AVG, Reduction.PRODUCT))
BITWISE = frozenset((Reduction.BAND, Reduction.BOR, Reduction.BXOR))
OF_BOOLS = {
    Reduction.SUM: Reduction.BOR,
    Reduction.MAX: Reduction.BOR,
    Reduction.PRODUCT: Reduction.BAND,
    Reduction.MIN: Reduction.BAND,
}


def check_reduction(operation: Operation, reduction: Reduction, dtype: DType) -> Reduction:
    """What is computed; what has no meaning for a dtype is refused, as torch does.

    The sum of bools is whether any is true, their product whether all are.
    """
    if not operation.combines:
        return reduction
    if dtype.is_bool():
        reduction = OF_BOOLS.get(reduction, reduction)
    is_fraction = reduction is Reduction.AVG and not dtype.is_floating()
    is_of_bits = reduction in BITWISE and dtype.is_floating()
    if is_fraction or is_of_bits:
        found = f"{reduction.value} of {dtype}"
        expected = "a dtype of floats" if is_fraction else "a dtype of integers"
        fix = "reduce by sum and divide" if is_fraction else "convert the tensor first"
        raise CollectiveError(operation.value, found, expected, fix)
    return reduction


def accumulation_dtype(reduction: Reduction, dtype: DType) -> DType:
    """Of what some ranks have brought so far: a narrow float is rounded once, at the end.

    >>> from tilewright.language.dtype import float16
    >>> accumulation_dtype(Reduction.SUM, float16), accumulation_dtype(Reduction.MAX, float16)
    (tl.float32, tl.float16)
    """
    is_narrow = dtype.is_floating() and dtype.bits < float32.bits
    return float32 if is_narrow and reduction in ROUNDING else dtype


def message_dtype(operation: Operation, reduction: Reduction, dtype: DType) -> DType:
    """Of the widest elements that are sent."""
    return accumulation_dtype(reduction, dtype) if operation.combines else dtype
