"""Who takes part in ``torch.distributed``: the world, its ranks, groups of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Unpack

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.config import CollectiveConfig, parse_config
from tilewright.collectives.group import (
    Group,
    RankMap,
    RankPlaces,
    num_mapped_ranks,
    places_of_ranks,
    targets_of,
)
from tilewright.collectives.rings import RingBook
from tilewright.collectives.tuning import RingKeys, RingOptions, parse_ring
from tilewright.collectives.work import Workers
from tilewright.collectives.world import World
from tilewright.errors import CollectiveError
from tilewright.runtime.deployment import Deployments
from tilewright.runtime.driver import Driver
from tilewright.runtime.placement.placement import Targets

BACKEND = "ahbm"

Member = tuple[int, int | None]
"""A run of workers, and a rank of it; 0 and None: the program outside of all workers."""

WorldKey = tuple[int, int]
"""A run of workers, and which of the worlds that each of them joins, one after the other."""


@dataclass(frozen=True, slots=True)
class _Map:
    """The PEs of ranks, if a map is said: equal if it means the same, however it is written."""

    said: RankMap | None = field(compare=False)
    places: tuple[RankPlaces, ...] | None

    def __repr__(self) -> str:
        return repr(self.said)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a rank says of a world; all of its ranks must say the same."""

    world_size: int
    rank_to_pe: _Map
    algorithm: str | None
    algorithms: Mapping[str, Algorithm] | None
    ccl_yaml: Path | None
    ring: RingOptions

    def check(self, other: "_Terms", where: str) -> None:
        for each in fields(self):
            mine, others = getattr(self, each.name), getattr(other, each.name)
            if mine != others:
                found, expected = f"{each.name}={others!r}", f"{mine!r}, as the others say"
                raise CollectiveError(where, found, expected, "let all say the same")


class ProcessGroups:
    """A world of ranks: by default as many as there are SIPs, a SIP each.

    A world belongs to the workers of one spawn, or to the program outside of all workers. The n-th
    that a worker joins is the n-th of all others too.
    """

    def __init__(
        self, driver: Driver, tensors: Deployments, workers: Workers, *, carries_data: bool
    ) -> None:
        self._driver = driver
        self._tensors = tensors
        self._workers = workers
        self._carries_data = carries_data
        self.book = RingBook(driver)  # of all worlds: rings never share bytes
        self.notes = tensors.notes  # for people, beside those of all worlds
        self._worlds: dict[WorldKey, World] = {}
        self._terms: dict[WorldKey, _Terms] = {}  # as the first of its ranks says
        self._joined: dict[Member, WorldKey] = {}  # of those who have not left
        self._num_joined: Counter[Member] = Counter()  # worlds so far
        self.group = _NamedGroups(self)

    # -- the world -------------------------------------------------------------------------------

    def init_process_group(
        self,
        backend: str | None = BACKEND,
        init_method: str | None = None,
        timeout: object = None,
        world_size: int = -1,
        rank: int = -1,
        store: object = None,
        group_name: str = "",
        pg_options: object = None,
        device_id: object = None,
        *,
        rank_to_pe: RankMap | None = None,
        algorithm: str | None = None,
        algorithms: Mapping[str, Algorithm] | None = None,
        ccl_yaml: str | Path | None = None,
        **ring: Unpack[RingKeys],
    ) -> None:
        """Every worker calls it; the first makes the world, the others join it.

        What comes after ``device_id`` is ours: a PE or PEs for each rank in the place of a SIP; by
        which algorithm, of which table, calls run that name none; and on which rings, by the keys
        of ``ccl.yaml``. What is not said here is said by ``ccl_yaml``, over the packaged file. How
        processes find each other (``init_method``, ``store`` and what is about them) has no meaning
        here.
        """
        del init_method, timeout, store, group_name, pg_options, device_id
        where, mine = "init_process_group", self._workers.rank
        if backend not in (None, BACKEND):
            found = f"the backend {backend!r}"
            raise CollectiveError(where, found, repr(BACKEND), "name this one")
        if mine is not None and rank not in (-1, mine):
            found = f"rank={rank} by the worker of rank {mine}"
            raise CollectiveError(where, found, f"rank={mine}", "pass the rank that spawn gave")
        if self.is_initialized():
            fix = "call destroy_process_group first"
            raise CollectiveError(where, "a second call", "one by each rank", fix)
        size = self._size(world_size, rank_to_pe)
        key = self._run, self._num_joined[self._caller]
        first = self._terms.get(key)
        places, file = (
            self._map(size, rank_to_pe, first),
            None if ccl_yaml is None else Path(ccl_yaml),
        )
        terms = _Terms(size, places, algorithm, algorithms, file, parse_ring(where, ring))
        if first is None:
            self._forget_past_worlds()
            self._worlds[key], self._terms[key] = self._made(terms), terms
        else:
            first.check(terms, where)
        self._joined[self._caller] = key
        self._num_joined[self._caller] += 1

    def _map(self, size: int, said: RankMap | None, first: _Terms | None) -> _Map:
        if first is not None and said is first.rank_to_pe.said:
            return first.rank_to_pe  # most ranks share one list, and reading it takes a while
        grid = self._driver.machine.grid
        return _Map(said, None if said is None else places_of_ranks(grid, size, said))

    def _made(self, terms: _Terms) -> World:
        mapped = terms.rank_to_pe.places
        places = mapped or places_of_ranks(self._driver.machine.grid, terms.world_size, None)
        config, said = parse_config(terms.ccl_yaml), terms.ring
        self.note_config(config)
        table = terms.algorithms or config.algorithms
        return World(
            self._driver, self._tensors, self._workers, places, self._carries_data, self.book,
            is_mapped=mapped is not None, algorithm=terms.algorithm or config.algorithm,
            algorithms=table, ring=said.over(config.defaults.ring),
            rings={name: said.over(entry.ring) for name, entry in config.entries.items()},
            foreign={
                name: entry
                for name, entry in config.entries.items()
                if entry.is_foreign and (terms.algorithms is None or name not in table)
            },
            notes=self.notes,
        )  # fmt: skip

    def note_config(self, config: CollectiveConfig) -> None:
        """Add a note for each key of a ``ccl.yaml`` that changes nothing here, once."""
        self.notes.extend(config.without_effect)

    def _size(self, world_size: int, rank_to_pe: RankMap | None) -> int:
        if world_size != -1:
            return world_size
        if self._workers.num_workers:
            return self._workers.num_workers
        if rank_to_pe is not None:
            return num_mapped_ranks(rank_to_pe)
        return self._driver.machine.grid.num_sips

    def destroy_process_group(self, group: Group | None = None) -> None:
        """The caller leaves; a group of its own is simply used no more."""
        world = self._checked_world("destroy_process_group")
        if group is not None and group is not world.group:
            return
        left = self._joined.pop(self._caller)
        if left not in self._joined.values():
            self._forget(left)

    def _forget(self, key: WorldKey) -> None:
        """Forget a world that no rank can use any more, and its rings."""
        del self._terms[key]
        self.book.forget(self._worlds.pop(key).all_groups())

    def _forget_past_worlds(self) -> None:
        """Forget the worlds of workers that have ended, unless a call is under way."""
        over = self._workers.num_runs + (
            self._workers.num_workers == 0
        )  # the first run that is not
        for key in [key for key in self._worlds if 0 < key[0] < over]:
            if self._worlds[key].is_idle:
                self._forget(key)
        for member in [each for each in self._num_joined if 0 < each[0] < over]:
            if self._joined.get(member) not in self._worlds:
                self._joined.pop(member, None)
                del self._num_joined[member]

    @property
    def _run(self) -> int:
        return self._workers.num_runs if self._workers.rank is not None else 0

    @property
    def _caller(self) -> Member:
        return self._run, self._workers.rank

    def is_initialized(self) -> bool:
        """For the caller."""
        return self._caller in self._joined

    @staticmethod
    def is_available() -> bool:
        return True

    def get_backend(self, group: Group | None = None) -> str:
        del group
        self._checked_world("get_backend")
        return BACKEND

    # -- ranks and groups ------------------------------------------------------------------------

    def get_rank(self, group: Group | None = None) -> int:
        """Of the calling worker; 0 outside of workers, -1 if it is not in the group."""
        mine = self._workers.rank or 0
        if group is None:
            return mine
        return group.world_ranks.index(mine) if mine in group.world_ranks else -1

    def get_world_size(self, group: Group | None = None) -> int:
        """Before there is a world, the number of workers or of SIPs; -1 for who is not in it."""
        if group is not None:
            return group.size if self.get_rank(group) >= 0 else -1
        if self.is_initialized():
            return self._worlds[self._joined[self._caller]].size
        return self._workers.num_workers or self._driver.machine.grid.num_sips

    def new_group(
        self,
        ranks: Sequence[int] | None = None,
        timeout: object = None,
        backend: str | None = None,
        pg_options: object = None,
        use_local_synchronization: bool = False,
        group_desc: str | None = None,
    ) -> Group:
        """Every worker calls it with the same ranks, and gets the same group."""
        del timeout, pg_options, group_desc
        world = self._checked_world("new_group")
        if backend not in (None, BACKEND) or use_local_synchronization:
            found = f"backend={backend!r}, use_local_synchronization={use_local_synchronization}"
            fix = "leave both out, and let all ranks call new_group"
            raise CollectiveError("new_group", found, f"{BACKEND!r} and False", fix)
        return world.new_group(tuple(range(world.size) if ranks is None else ranks))

    def get_process_group_ranks(self, group: Group | None = None) -> list[int]:
        """Ranks of the world, in the order of the group."""
        return list(self._group("get_process_group_ranks", group).world_ranks)

    def get_group_rank(self, group: Group, global_rank: int) -> int:
        return group.rank_of(global_rank)

    def get_global_rank(self, group: Group, group_rank: int) -> int:
        if not 0 <= group_rank < group.size:
            found, expected = f"rank {group_rank}", f"one from 0 to {group.size - 1}"
            raise CollectiveError(group.name, found, expected, "name a rank of the group")
        return group.world_ranks[group_rank]

    # -- for the rest of the host ----------------------------------------------------------------

    def targets_of_caller(self) -> Targets | None:
        """The PEs that a map gives the calling rank; None without a map, or if it is no rank."""
        rank = self._workers.rank
        if rank is None or not self.is_initialized():
            return None
        world = self._worlds[self._joined[self._caller]]
        return targets_of(world.ranks[rank]) if world.is_mapped else None

    def wait_all(self) -> None:
        """For every call that anybody has made."""
        for world in self._worlds.values():
            world.wait_all()

    def _checked_world(self, where: str) -> World:
        if not self.is_initialized():
            found, expected = "no process group", "one that is initialised"
            fix = 'call init_process_group(backend="ahbm") first'
            raise CollectiveError(where, found, expected, fix)
        return self._worlds[self._joined[self._caller]]

    def _group(self, where: str, group: Group | None) -> Group:
        world = self._checked_world(where)
        return world.group if group is None else group

    def _is_outside(self, where: str, group: Group) -> bool:
        """Whether the caller is not in the group: its call is nothing but a note, as in torch."""
        mine = self._workers.rank
        if mine is None or mine in group.world_ranks:
            return False
        self.notes.append(f"{where} in {group.name} by rank {mine}, which is not in it: not done")
        return True

    def _root(
        self,
        where: str,
        group: Group,
        world_rank: int | None,
        group_rank: int | None,
        default: int | None = None,
    ) -> int:
        """A rank of the group, from the number that the caller gave: the world's or the group's."""
        if world_rank is None and group_rank is None:
            world_rank = default
        if (world_rank is None) == (group_rank is None):
            found = "neither" if world_rank is None else "both"
            expected = "a rank of the world or one of the group"
            raise CollectiveError(where, found, expected, "name one of them")
        if world_rank is not None:
            return group.rank_of(world_rank)
        return group.rank_of(self.get_global_rank(group, int(group_rank or 0)))


class _NamedGroups:
    """``dist.group``."""

    def __init__(self, groups: ProcessGroups) -> None:
        self._groups = groups

    @property
    def WORLD(self) -> Any:  # noqa: N802  # torch's name
        """All ranks."""
        return self._groups._group("group.WORLD", None)
