"""``torch.distributed``: process groups and collectives, by the names and meanings of torch."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.run import Buffers
from tilewright.collectives.worker import Workers
from tilewright.collectives.world import Work, World, places_of_ranks
from tilewright.errors import CollectiveError
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.driver import Driver
from tilewright.runtime.tensor import Tensor

__all__ = ("Distributed", "ReduceOp")

BACKEND = "ahbm"


class ReduceOp(StrEnum):
    """How values of ranks become one."""

    SUM = "sum"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


class Distributed:
    """A world of ranks: by default as many as there are SIPs, a SIP each."""

    ReduceOp = ReduceOp

    def __init__(
        self, driver: Driver, tensors: Deployments, workers: Workers, *, carries_data: bool
    ) -> None:
        self._driver = driver
        self._tensors = tensors
        self._workers = workers
        self._carries_data = carries_data
        self._world: World | None = None

    # -- the world -------------------------------------------------------------------------------

    def init_process_group(
        self,
        backend: str = BACKEND,
        *,
        world_size: int | None = None,
        rank: int | None = None,  # torch's; a worker knows its own
        rank_to_pe: Sequence[tuple[int, int, int]] | None = None,
        algorithm: str | None = None,
        **others: Any,
    ) -> None:
        """Every worker may call it; the first makes the world, the others join it."""
        del rank, others
        if backend != BACKEND:
            found = f"the backend {backend!r}"
            raise CollectiveError("init_process_group", found, repr(BACKEND), "name this one")
        size = world_size or self._workers.num_workers or self._driver.machine.grid.num_sips
        if rank_to_pe is not None and world_size is None and not self._workers.num_workers:
            size = len(rank_to_pe)
        if self._world is None:
            places = places_of_ranks(self._driver, size, rank_to_pe)
            self._world = World(
                self._driver, self._tensors, self._workers, places, self._carries_data
            )
            if algorithm is not None:
                self._world.algorithm = algorithm
        elif self._world.size != size:
            found, expected = f"world_size={size}", f"{self._world.size}, as the others say"
            raise CollectiveError("init_process_group", found, expected, "let all say the same")

    def destroy_process_group(self) -> None:
        self._world = None

    def is_initialized(self) -> bool:
        return self._world is not None

    def get_backend(self) -> str:
        self._checked_world("get_backend")
        return BACKEND

    def get_rank(self, group: Group | None = None) -> int:
        """Of the calling worker; 0 outside of workers, -1 if it is not in the group."""
        mine = self._workers.rank or 0
        if group is None:
            return mine
        return group.world_ranks.index(mine) if mine in group.world_ranks else -1

    def get_world_size(self, group: Group | None = None) -> int:
        """Before there is a world, the number of workers or of SIPs."""
        if group is not None:
            return group.size
        if self._world is not None:
            return self._world.size
        return self._workers.num_workers or self._driver.machine.grid.num_sips

    def new_group(self, ranks: Sequence[int] | None = None) -> Group:
        """Every worker calls it with the same ranks, and gets the same group."""
        world = self._checked_world("new_group")
        chosen = range(world.size) if ranks is None else ranks
        return world.shared_group(tuple(chosen), self._workers.rank)

    # -- collectives -----------------------------------------------------------------------------

    def all_reduce(
        self,
        tensor: Tensor,
        op: str = ReduceOp.SUM,
        group: Group | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """In place, element by element over ranks."""
        buffers = Buffers((tensor,), (tensor,))
        return self._run(Operation.ALL_REDUCE, group, lambda _: buffers, async_op, op=op)

    def broadcast(
        self, tensor: Tensor, src: int = 0, group: Group | None = None, async_op: bool = False
    ) -> Work | None:
        """The values of rank ``src``, everywhere."""
        root = self._rank_in(group, src)

        def buffers(rank: int) -> Buffers:
            mine = rank == root
            return Buffers((tensor if mine else None,), (None if mine else tensor,))

        return self._run(Operation.BROADCAST, group, buffers, async_op, root=root)

    def reduce(
        self,
        tensor: Tensor,
        dst: int = 0,
        op: str = ReduceOp.SUM,
        group: Group | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """The result is in the tensor of rank ``dst``; the others keep theirs."""
        root = self._rank_in(group, dst)

        def buffers(rank: int) -> Buffers:
            return Buffers((tensor,), (tensor if rank == root else None,))

        return self._run(Operation.REDUCE, group, buffers, async_op, op=op, root=root)

    def all_gather(
        self,
        tensor_list: Sequence[Tensor],
        tensor: Tensor,
        group: Group | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """The tensors of all ranks, in the order of ranks."""

        def buffers(rank: int) -> Buffers:
            own = tuple(tensor if part == rank else None for part in range(len(tensor_list)))
            return Buffers(own, tuple(tensor_list))

        self._check_list("all_gather", tensor_list, group)
        return self._run(Operation.ALL_GATHER, group, buffers, async_op)

    def reduce_scatter(
        self,
        output: Tensor,
        input_list: Sequence[Tensor],
        op: str = ReduceOp.SUM,
        group: Group | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """Rank r gets the reduction of everybody's r-th tensor."""

        def buffers(rank: int) -> Buffers:
            own = tuple(output if part == rank else None for part in range(len(input_list)))
            return Buffers(tuple(input_list), own)

        self._check_list("reduce_scatter", input_list, group)
        return self._run(Operation.REDUCE_SCATTER, group, buffers, async_op, op=op)

    def all_to_all(
        self,
        output_tensor_list: Sequence[Tensor],
        input_tensor_list: Sequence[Tensor],
        group: Group | None = None,
        async_op: bool = False,
    ) -> Work | None:
        """The s-th output is what rank s has for this rank."""
        self._check_list("all_to_all", input_tensor_list, group)
        self._check_list("all_to_all", output_tensor_list, group)
        ranks = len(input_tensor_list)

        def buffers(rank: int) -> Buffers:
            pairs = [(sender, receiver) for sender in range(ranks) for receiver in range(ranks)]
            return Buffers(
                tuple(input_tensor_list[to] if sender == rank else None for sender, to in pairs),
                tuple(output_tensor_list[sender] if to == rank else None for sender, to in pairs),
            )

        return self._run(Operation.ALL_TO_ALL, group, buffers, async_op, algorithm="direct")

    # -- what they have in common ----------------------------------------------------------------

    def _run(
        self,
        operation: Operation,
        group: Group | None,
        buffers_of: Any,
        async_op: bool,
        *,
        op: str = ReduceOp.SUM,
        root: int = 0,
        algorithm: str | None = None,
    ) -> Work | None:
        world = self._checked_world(operation.value)
        chosen = world.group if group is None else group
        reduction = ReduceOp(op).value
        call = Call(operation, chosen.size, root)
        works = [
            world.start(chosen, rank, call, buffers_of(rank), reduction, algorithm)
            for rank in world.callers(chosen)
        ]
        work = Work(
            [pending for each in works for pending in each.pending],
            [staged for each in works for staged in each.stages],
        )
        if async_op:
            return work
        work.wait()
        return None

    def _checked_world(self, where: str) -> World:
        if self._world is None:
            found, expected = "no process group", "one that is initialised"
            fix = 'call init_process_group(backend="ahbm") first'
            raise CollectiveError(where, found, expected, fix)
        return self._world

    def _rank_in(self, group: Group | None, world_rank: int) -> int:
        if group is None:
            return world_rank
        return group.world_ranks.index(world_rank)

    def _check_list(self, where: str, tensors: Sequence[Tensor], group: Group | None) -> None:
        size = self.get_world_size(group)
        if len(tensors) != size:
            found = f"{len(tensors)} tensors"
            raise CollectiveError(where, found, f"{size}, one a rank", "correct the list")
