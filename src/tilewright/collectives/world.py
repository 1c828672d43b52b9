"""All ranks of a context: their groups, and the collectives that they call."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tilewright.collectives.algorithm import AUTO_ALGORITHM, Algorithm
from tilewright.collectives.algorithms import ALGORITHMS
from tilewright.collectives.buffers import Buffers
from tilewright.collectives.choose import Choice, Chooser, LaneCall, placed_call
from tilewright.collectives.config import AlgorithmEntry
from tilewright.collectives.group import Group, RankPlaces, Signature, targets_of
from tilewright.collectives.operation import (
    Call,
    Operation,
    Reduction,
    check_reduction,
    message_dtype,
)
from tilewright.collectives.rings import RingBook
from tilewright.collectives.run import start_collective
from tilewright.collectives.staging import Layout, copy_group, layout_of, owner_lanes, stage
from tilewright.collectives.tuning import (
    NO_OPTIONS,
    NOTHING_SAID,
    CallOptions,
    RingOptions,
    TuningSpec,
)
from tilewright.collectives.work import Work, Workers
from tilewright.errors import CollectiveError
from tilewright.language.dtype import DType, int32
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.driver import Driver
from tilewright.runtime.placement.policy import DPPolicy
from tilewright.runtime.tensor.tensor import Tensor

MAX_CHOICES = 16


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a call runs at all ranks, as the first of them says."""

    layout: Layout | None  # None: copies that are spread over the PEs of each rank
    choice: Choice
    copied: Layout | None
    """The layout if one of several copies exchanges for all: a launch more, less on the links."""


@dataclass(eq=False)
class World:
    """Groups are numbered by ranks of the world."""

    driver: Driver
    tensors: Deployments
    workers: Workers
    ranks: tuple[RankPlaces, ...]
    carries_data: bool
    book: RingBook
    is_mapped: bool = False  # the user has said which PEs ranks are
    algorithm: str = AUTO_ALGORITHM
    algorithms: Mapping[str, Algorithm] = field(default_factory=lambda: ALGORITHMS)
    ring: RingOptions = NOTHING_SAID
    rings: Mapping[str, RingOptions] = field(default_factory=dict)  # of some algorithms instead
    foreign: Mapping[str, AlgorithmEntry] = field(default_factory=dict)  # whose module has no plan
    notes: list[str] = field(default_factory=list)  # for people: what nobody asked for by name

    def __post_init__(self) -> None:
        self.chooser = Chooser(self.driver.machine, self.algorithms, self.ring, self.rings)
        self.choices: deque[Choice] = deque(maxlen=MAX_CHOICES)  # of the calls that began last
        self.group = Group("the world", self.ranks, tuple(range(len(self.ranks))))
        self._groups: list[Group] = []
        self._num_asked: dict[int | None, int] = {}  # by worker: groups that it has asked for
        self._channels: dict[tuple[Group, int, int, int], Group] = {}
        self._copies: dict[tuple[Group, int, Layout | None], Group | None] = {}
        self._flags: dict[tuple[Group, int], Tensor] = {}
        self._launch = partial(
            start_collective, self.driver, self.tensors, self.book, carries_data=self.carries_data
        )
        self.driver.add_end_listener(self._forget_calls)

    @property
    def size(self) -> int:
        return len(self.ranks)

    # -- groups ----------------------------------------------------------------------------------

    def new_group(self, world_ranks: tuple[int, ...]) -> Group:
        """Some ranks of the world; the same group for all workers whose n-th new group it is."""
        number = self._num_asked.get(self.workers.rank, 0)
        self._num_asked[self.workers.rank] = number + 1
        if number == len(self._groups):
            self._check_ranks(world_ranks)
            places = tuple(self.ranks[rank] for rank in world_ranks)
            self._groups.append(Group(f"group {number + 1}", places, world_ranks))
        group = self._groups[number]
        if group.world_ranks != world_ranks:
            found, expected = f"the ranks {world_ranks}", f"{group.world_ranks}, as others say"
            raise CollectiveError("new_group", found, expected, "let all ranks call it alike")
        return group

    def _check_ranks(self, world_ranks: Sequence[int]) -> None:
        for rank in world_ranks:
            if not 0 <= rank < self.size:
                found, expected = f"rank {rank}", f"one from 0 to {self.size - 1}"
                raise CollectiveError("new_group", found, expected, "correct the ranks")
        if len(set(world_ranks)) != len(world_ranks) or not world_ranks:
            found = f"the ranks {list(world_ranks)}"
            raise CollectiveError("new_group", found, "each once", "name some ranks, each once")

    def channel(self, group: Group, sender: int, receiver: int, tag: int) -> Group:
        """The way of messages from one rank of a group to another: a group of the two."""
        key = group, sender, receiver, tag
        if key not in self._channels:
            pair = group.world_ranks[sender], group.world_ranks[receiver]
            name = f"the channel from rank {pair[0]} to rank {pair[1]}, tag {tag}"
            places = group.ranks[sender], group.ranks[receiver]
            self._channels[key] = Group(name, places, pair)
        return self._channels[key]

    def flag(self, group: Group, rank: int) -> Tensor:
        """What a rank brings to barriers: one element on its first PE."""
        key = group, rank
        if key not in self._flags:
            name = f"flag of rank {group.world_ranks[rank]} in {group.name}"
            targets = targets_of(group.ranks[rank][:1])
            flag = self.tensors.empty((1,), int32, dp=DPPolicy(), name=name, targets=targets)
            self._flags[key] = flag.fill_(0)
        return self._flags[key]

    def wait_all(self) -> None:
        """For every call that anybody has made."""
        for work in self._last_works():
            work.wait()

    @property
    def is_idle(self) -> bool:
        """Whether every call that anybody has made is complete."""
        return all(work.is_completed() for work in self._last_works())

    def _last_works(self) -> Iterator[Work]:
        for group in self._callers():
            yield from filter(None, map(group.last_work.get, range(group.size)))

    def all_groups(self) -> frozenset[Group]:
        """Return all groups that rings of this world are for."""
        return frozenset([*self._callers(), *filter(None, self._copies.values())])

    def _callers(self) -> tuple[Group, ...]:
        """Return the groups that ranks have named in calls."""
        return (self.group, *self._groups, *self._channels.values())

    def _forget_calls(self) -> None:
        """Let the next call of each group be its first: an error has ended those before."""
        for group in self._callers():
            group.forget_calls()

    def callers(self, group: Group) -> list[int]:
        """The ranks of a group that this call is for: the worker's, or outside of workers all."""
        mine = self.workers.rank
        return list(range(group.size)) if mine is None else [group.rank_of(mine)]

    # -- calls -----------------------------------------------------------------------------------

    def start(
        self,
        group: Group,
        rank: int,
        call: Call,
        buffers: Buffers,
        reduction: Reduction = Reduction.SUM,
        options: CallOptions = NO_OPTIONS,
        algorithm: str | None = None,
    ) -> Work:
        """One rank's part; it meets the parts of the others in simulated time.

        It comes after all that the caller has submitted, and after the rank's call before it.
        ``algorithm`` is taken unless the options name one.
        """
        buffers.check(call.operation)
        for piece in buffers.pieces:
            if piece.tensor.owner is not self.tensors:
                found = f"tensor {piece.tensor.name!r} of another context"
                fix = "use tensors of the context whose torch.distributed is called"
                raise CollectiveError(call.operation.value, found, "tensors of this one", fix)
        call = placed_call(call, group, self.driver.machine)
        reduces = check_reduction(call.operation, reduction, buffers.dtype)
        mine = layout_of(group, rank, call, buffers)
        world_rank = group.world_ranks[rank]
        signature = Signature(
            call, str(buffers.dtype), reduction.value, buffers.part_sizes, world_rank, options
        )
        named = options.algorithm or algorithm
        dtype = message_dtype(call.operation, reduces, buffers.dtype)
        number, agreed = group.begin_call(
            rank,
            signature,
            lambda: self._agree(group, call, buffers, dtype, mine, named, options.ring),
        )
        self.driver.settle()

        def body() -> None:
            staged = stage(self.tensors, group, rank, buffers, mine, agreed.layout)
            if staged.copies:
                text = "tensors that do not lie as others do were copied through the host"
                self.notes.append(f"{call.name} of rank {world_rank} in {group.name}: {text}")
            lanes = owner_lanes(agreed.copied, len(group.ranks[rank]))
            self._launch(group, rank, call, agreed.choice, staged.buffers, reduces, lanes).wait()
            self._tell_copies(group, rank, agreed, staged.buffers)
            staged.finish()

        what = f"{signature} (call {number} of {group.name})"
        work = Work(self.driver, what, f"rank {world_rank}", body, group.last_work.get(rank))
        group.last_work[rank] = work
        self.workers.note_call(work)
        return work

    def _tell_copies(self, group: Group, rank: int, agreed: Agreement, buffers: Buffers) -> None:
        """Results go from the PEs that have exchanged to those that have copies."""
        key = group, rank, agreed.copied
        if key not in self._copies:
            self._copies[key] = copy_group(group, rank, agreed.copied)
        copies = self._copies[key]
        if copies is None:
            return
        call = Call(Operation.BROADCAST, copies.size)
        tuning = replace(agreed.choice.tuning, ring=agreed.choice.tuning.copy_ring)
        choice = Choice(ALGORITHMS["double_tree"], tuning)
        for piece in dict.fromkeys(buffers.targets):
            if piece is None:
                continue
            sides = [Buffers((piece,), (None,)), *[Buffers((None,), (piece,))] * (copies.size - 1)]
            launches = [
                self._launch(copies, place, call, choice, side) for place, side in enumerate(sides)
            ]
            for pending in launches:
                pending.wait()

    def _agree(
        self,
        group: Group,
        call: Call,
        buffers: Buffers,
        dtype: DType,
        layout: Layout | None,
        algorithm: str | None,
        ring: RingOptions,
    ) -> Agreement:
        """Choose how a call is to run, and note why; ``dtype`` is that of its messages."""
        boxes = () if layout is None else layout.boxes
        owners = {box: lane for lane, box in boxes}  # copies are one lane
        lanes = sorted(owners.values()) if boxes else list(range(len(group.ranks[0])))
        num_elements = sum(buffers.part_sizes.values())
        if not call.is_uneven:
            num_elements = max(buffers.part_sizes.values()) * buffers.num_parts
        shard_bytes = -(-num_elements * dtype.bits // (8 * max(1, len(lanes))))
        name = self._algorithm_name(call, algorithm)
        on = LaneCall(call, group, lanes, shard_bytes, -(-dtype.bits // 8))
        choice = self.chooser.choose(name, on, TuningSpec(ring))
        self.choices.append(choice)
        if choice.predictions:
            self.notes.append(f"{call.name} in {group.name} takes {choice.reason}")
        is_long = shard_bytes > choice.tuning.chunk_bytes
        return Agreement(layout, choice, layout if is_long else None)

    def _algorithm_name(self, call: Call, named: str | None) -> str:
        """Return the name that a call says, or the default; some operations have only one.

        Refuse an algorithm whose module has a kernel of another dialect instead of a plan.
        """
        able = [name for name, each in self.algorithms.items() if call.operation in each.operations]
        name = named or (able[0] if len(able) == 1 else self.algorithm)
        entry = self.foreign.get(name)
        if entry is not None:
            module = f"module {entry.module!r} has a kernel and no plan"
            found = f"the algorithm {name!r} of {entry.place}, whose {module}"
            expected = f"one of {', '.join(able)}, or 'auto'"
            fix = "name one of these, or write its plan as module: package.module:function"
            raise CollectiveError(call.name, found, expected, fix)
        return name
