"""``torch.distributed``: collectives, by the names and meanings of torch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from tilewright.collectives.buffers import (
    Buffers,
    Piece,
    equal_rows,
    only_at,
    pairs_of,
    rows_by_size,
)
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call, Operation, Reduction
from tilewright.collectives.tuning import CallKeys, parse_call
from tilewright.collectives.work import JointWork, Work
from tilewright.errors import CollectiveError
from tilewright.host.point_to_point import PointToPoint
from tilewright.runtime.tensor.tensor import Tensor

Handle = Work | JointWork
SUM = Reduction.SUM


class Distributed(PointToPoint):
    """Roots are ranks of the world; ``group_src`` and ``group_dst`` are ranks of the group.

    With ``async_op`` a call returns at once with a handle, whose ``wait`` makes results usable.
    Outside of workers a call is that of all ranks, and by a rank that is not in the group it is
    nothing but a note. Every call takes the keys of ``ccl.yaml`` as
    keywords, for itself alone: ``algorithm``, ``buffer_kind``, ``backpressure``, ``n_slots``,
    ``slot_size``, ``ipcq_credit_size_bytes``; all its ranks must say the same.
    """

    ReduceOp = Reduction

    # -- all ranks get it ------------------------------------------------------------------------

    def all_reduce(
        self,
        tensor: Tensor,
        op: str = SUM,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """In place, element by element over ranks."""
        whole = (Piece(tensor),)
        buffers = Buffers(whole, whole)
        return self._call(Operation.ALL_REDUCE, group, lambda _: buffers, async_op, options, op=op)

    def all_gather(
        self,
        tensor_list: Sequence[Tensor],
        tensor: Tensor,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """The tensors of all ranks, in the order of ranks."""
        targets = self._pieces("all_gather", tensor_list, group)
        return self._gather_all(targets, tensor, group, async_op, options)

    def all_gather_into_tensor(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """As `all_gather`, one after the other along the first axis, or along a new one."""
        where = "all_gather_into_tensor"
        size = self._group(where, group).size
        targets = equal_rows(where, output_tensor, size, part=input_tensor)
        return self._gather_all(targets, input_tensor, group, async_op, options)

    all_gather_single = all_gather_into_tensor

    def _gather_all(
        self,
        targets: tuple[Piece | None, ...],
        tensor: Tensor,
        group: Group | None,
        async_op: bool,
        options: CallKeys,
    ) -> Handle | None:
        def buffers(rank: int) -> Buffers:
            return Buffers(only_at(rank, Piece(tensor), len(targets)), targets)

        return self._call(Operation.ALL_GATHER, group, buffers, async_op, options)

    # -- each rank gets its part -----------------------------------------------------------------

    def reduce_scatter(
        self,
        output: Tensor,
        input_list: Sequence[Tensor],
        op: str = SUM,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """Rank r gets the reduction of everybody's r-th tensor."""
        sources = self._pieces("reduce_scatter", input_list, group)
        return self._reduce_parts(output, sources, op, group, async_op, options)

    def reduce_scatter_tensor(
        self,
        output: Tensor,
        input: Tensor,  # torch's name
        op: str = SUM,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """As `reduce_scatter`, of equal parts of one tensor."""
        where = "reduce_scatter_tensor"
        sources = equal_rows(where, input, self._group(where, group).size, part=output)
        return self._reduce_parts(output, sources, op, group, async_op, options)

    reduce_scatter_single = reduce_scatter_tensor

    def _reduce_parts(
        self,
        output: Tensor,
        sources: tuple[Piece | None, ...],
        op: str,
        group: Group | None,
        async_op: bool,
        options: CallKeys,
    ) -> Handle | None:
        def buffers(rank: int) -> Buffers:
            return Buffers(sources, only_at(rank, Piece(output), len(sources)))

        return self._call(Operation.REDUCE_SCATTER, group, buffers, async_op, options, op=op)

    def all_to_all(
        self,
        output_tensor_list: Sequence[Tensor],
        input_tensor_list: Sequence[Tensor],
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """The s-th output is what rank s has for this rank; sizes may differ."""
        inputs = self._pieces("all_to_all", input_tensor_list, group)
        outputs = self._pieces("all_to_all", output_tensor_list, group)
        buffers = partial(pairs_of, outputs=outputs, inputs=inputs)
        return self._call(Operation.ALL_TO_ALL, group, buffers, async_op, options)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,  # torch's name
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        group: Group | None = None,
        async_op: bool = False,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """As `all_to_all`, of parts of two tensors along their first axis."""
        where = "all_to_all_single"
        size = self._group(where, group).size
        inputs = rows_by_size(where, input, input_split_sizes, size)
        outputs = rows_by_size(where, output, output_split_sizes, size)
        buffers = partial(pairs_of, outputs=outputs, inputs=inputs)
        return self._call(Operation.ALL_TO_ALL, group, buffers, async_op, options)

    # -- one rank sends or gets it ---------------------------------------------------------------

    def broadcast(
        self,
        tensor: Tensor,
        src: int | None = None,
        group: Group | None = None,
        async_op: bool = False,
        group_src: int | None = None,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """Every rank's tensor becomes that of ``src``."""
        root = self._root("broadcast", self._group("broadcast", group), src, group_src)
        whole = (Piece(tensor),)

        def buffers(rank: int) -> Buffers:
            return Buffers(whole, (None,)) if rank == root else Buffers((None,), whole)

        return self._call(Operation.BROADCAST, group, buffers, async_op, options, root=root)

    def reduce(
        self,
        tensor: Tensor,
        dst: int | None = None,
        op: str = SUM,
        group: Group | None = None,
        async_op: bool = False,
        group_dst: int | None = None,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """Only the tensor of ``dst`` changes."""
        root = self._root("reduce", self._group("reduce", group), dst, group_dst)
        whole = (Piece(tensor),)

        def buffers(rank: int) -> Buffers:
            return Buffers(whole, whole if rank == root else (None,))

        return self._call(Operation.REDUCE, group, buffers, async_op, options, op=op, root=root)

    def gather(
        self,
        tensor: Tensor,
        gather_list: Sequence[Tensor] | None = None,
        dst: int | None = None,
        group: Group | None = None,
        async_op: bool = False,
        group_dst: int | None = None,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """``dst``, which alone has a list, gets the tensors of all ranks."""
        root = self._root("gather", self._group("gather", group), dst, group_dst, default=0)
        pieces = self._list_of_root("gather", gather_list, group, root)

        def buffers(rank: int) -> Buffers:
            return Buffers(only_at(rank, Piece(tensor), len(pieces)), pieces)

        return self._call(Operation.GATHER, group, buffers, async_op, options, root=root)

    def scatter(
        self,
        tensor: Tensor,
        scatter_list: Sequence[Tensor] | None = None,
        src: int | None = None,
        group: Group | None = None,
        async_op: bool = False,
        group_src: int | None = None,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """Rank r gets the r-th tensor of the list that ``src`` alone has."""
        root = self._root("scatter", self._group("scatter", group), src, group_src, default=0)
        pieces = self._list_of_root("scatter", scatter_list, group, root)

        def buffers(rank: int) -> Buffers:
            return Buffers(pieces, only_at(rank, Piece(tensor), len(pieces)))

        return self._call(Operation.SCATTER, group, buffers, async_op, options, root=root)

    def barrier(
        self,
        group: Group | None = None,
        async_op: bool = False,
        device_ids: object = None,
        **options: Unpack[CallKeys],
    ) -> Handle | None:
        """Nobody leaves it before all have come; it takes the time of a small all-reduce."""
        del device_ids
        world, chosen = self._checked_world("barrier"), self._group("barrier", group)

        def buffers(rank: int) -> Buffers:
            flag = (Piece(world.flag(chosen, rank)),)
            return Buffers(flag, flag)

        return self._call(
            Operation.ALL_REDUCE, group, buffers, async_op, options,
            word="barrier", algorithm="direct",
        )  # fmt: skip

    # -- what they have in common ----------------------------------------------------------------

    def _call(
        self,
        operation: Operation,
        group: Group | None,
        buffers_of: Callable[[int], Buffers],
        async_op: bool,
        options: CallKeys,
        *,
        op: str = SUM,
        root: int = 0,
        word: str = "",
        algorithm: str | None = None,
    ) -> Handle | None:
        world = self._checked_world(operation.value)
        chosen = self._group(operation.value, group)
        if op not in tuple(Reduction):
            expected = ", ".join(Reduction)
            raise CollectiveError(operation.value, f"op={op!r}", expected, "name one of these")
        call = Call(operation, chosen.size, root, word=word)
        if self._is_outside(call.name, chosen):
            return None
        said = parse_call(call.name, options)
        works = [
            world.start(chosen, rank, call, buffers_of(rank), Reduction(op), said, algorithm)
            for rank in world.callers(chosen)
        ]
        work = works[0] if len(works) == 1 else JointWork(works)
        if async_op:
            return work
        work.wait()
        return None

    def _pieces(
        self, where: str, tensors: Sequence[Tensor], group: Group | None
    ) -> tuple[Piece, ...]:
        size = self._group(where, group).size
        if len(tensors) != size:
            found = f"{len(tensors)} tensors"
            raise CollectiveError(where, found, f"{size}, one a rank", "correct the list")
        return tuple(map(Piece, tensors))

    def _list_of_root(
        self, where: str, tensors: Sequence[Tensor] | None, group: Group | None, root: int
    ) -> tuple[Piece | None, ...]:
        chosen = self._group(where, group)
        mine = self._workers.rank
        is_root = mine is None or self.get_rank(chosen) == root
        if is_root:
            return self._pieces(where, tensors or (), group)
        if tensors:
            found = f"a list of tensors by rank {mine}"
            expected = f"one by rank {chosen.world_ranks[root]} alone"
            raise CollectiveError(where, found, expected, "leave it out on other ranks")
        return (None,) * chosen.size
