"""All ranks of a context: their groups, and the collectives that they call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.collectives.group import Group, RankPlaces, Signature, sip_ranks
from tilewright.collectives.operation import Call
from tilewright.collectives.rings import RingBook
from tilewright.collectives.run import Buffers, Tuning, start_collective
from tilewright.collectives.staging import Stage, layout_of, stage
from tilewright.collectives.table import ALGORITHMS, Algorithm, find_algorithm
from tilewright.collectives.worker import Workers
from tilewright.errors import CollectiveError
from tilewright.machine.coords import PeCoord
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.driver import Driver
from tilewright.runtime.pending import Pending

__all__ = ("Work", "World", "places_of_ranks")


@dataclass(slots=True)
class Work:
    """A collective that may be under way; ``wait`` before its tensors are used."""

    pending: list[Pending]
    stages: list[Stage]
    is_finished: bool = False

    def wait(self) -> bool:
        """Until it is complete, and results are where they belong. As torch, returns True."""
        for each in self.pending:
            each.wait()
        if not self.is_finished:
            self.is_finished = True
            for staged in self.stages:
                staged.finish()
        return True

    def is_completed(self) -> bool:
        """In simulated time; what is copied back then is copied by ``wait``."""
        return all(each.is_completed for each in self.pending)


@dataclass(eq=False)
class World:
    """Groups are numbered by ranks of the world; ``rank_of`` says who calls."""

    driver: Driver
    tensors: Deployments
    workers: Workers
    ranks: tuple[RankPlaces, ...]
    carries_data: bool
    tuning: Tuning = field(default_factory=Tuning)
    algorithm: str = "ring"
    algorithms: Mapping[str, Algorithm] = field(default_factory=lambda: ALGORITHMS)

    def __post_init__(self) -> None:
        self.book = RingBook(self.driver)
        self.group = Group("world", self.ranks, tuple(range(len(self.ranks))))
        self._num_groups = 1
        self._groups: list[Group] = []
        self._made: dict[int | None, int] = {}  # by worker: groups that it has asked for

    @property
    def size(self) -> int:
        return len(self.ranks)

    def new_group(self, world_ranks: Sequence[int]) -> Group:
        """Some ranks of the world, in the order in which they are named."""
        for rank in world_ranks:
            if not 0 <= rank < self.size:
                found, expected = f"rank {rank}", f"one from 0 to {self.size - 1}"
                raise CollectiveError("new_group", found, expected, "correct the ranks")
        if len(set(world_ranks)) != len(world_ranks) or not world_ranks:
            fix = "name each rank once"
            raise CollectiveError("new_group", f"the ranks {list(world_ranks)}", "ranks", fix)
        name = f"group {self._num_groups}"
        self._num_groups += 1
        return Group(name, tuple(self.ranks[rank] for rank in world_ranks), tuple(world_ranks))

    def shared_group(self, world_ranks: tuple[int, ...], caller: int | None) -> Group:
        """The same group for all workers whose n-th new group it is."""
        number = self._made.get(caller, 0)
        self._made[caller] = number + 1
        if number == len(self._groups):
            self._groups.append(self.new_group(world_ranks))
        group = self._groups[number]
        if group.world_ranks != world_ranks:
            found, expected = f"the ranks {world_ranks}", f"{group.world_ranks}, as others say"
            raise CollectiveError("new_group", found, expected, "let all ranks call it alike")
        return group

    def callers(self, group: Group) -> list[int]:
        """The ranks of a group that this call is for: the worker's, or outside of workers all."""
        mine = self.workers.rank
        if mine is None:
            return list(range(group.size))
        if mine not in group.world_ranks:
            found = f"a call by rank {mine}"
            expected = f"one of the ranks {list(group.world_ranks)}"
            raise CollectiveError(group.name, found, expected, "call it on ranks of the group")
        return [group.world_ranks.index(mine)]

    def start(
        self,
        group: Group,
        rank: int,
        call: Call,
        buffers: Buffers,
        reduction: str = "sum",
        algorithm: str | None = None,
    ) -> Work:
        """One rank's part; it meets the parts of the others in simulated time."""
        chosen = find_algorithm(algorithm or self.algorithm, call.operation, self.algorithms)
        mine = layout_of(group, rank, buffers.tensors)
        first = buffers.tensors[0]
        signature = Signature(call, str(first.dtype), (first.numel(),), reduction, rank)
        number = group.begin_call(rank, signature)
        agreed = group.agree(number, mine)
        staged = stage(self.tensors, group, rank, buffers, mine, agreed)
        pending = start_collective(
            self.driver,
            self.tensors,
            self.book,
            group,
            rank,
            call,
            chosen,
            staged.buffers,
            reduction,
            self.tuning,
            carries_data=self.carries_data,
        )
        return Work([pending], [staged])


def places_of_ranks(
    driver: Driver, num_ranks: int, rank_to_pe: Sequence[tuple[int, int, int]] | None
) -> tuple[RankPlaces, ...]:
    """All PEs of a SIP for each rank, or the PE that a map names."""
    if rank_to_pe is None:
        return sip_ranks(driver.machine.grid, num_ranks)
    places = [PeCoord(*place) for place in rank_to_pe]
    for place in places:
        if not driver.machine.grid.has(place):
            found = f"{place}"
            raise CollectiveError("rank_to_pe", found, "a PE of the machine", "correct the map")
    if len(places) != num_ranks:
        found = f"{len(places)} PEs for {num_ranks} ranks"
        raise CollectiveError("rank_to_pe", found, "one a rank", "correct the map")
    return tuple((place,) for place in places)
