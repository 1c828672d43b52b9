"""Rings between the PEs of a group: which there must be, where their slots are, who is told.

An install plan is frozen and checked before a message is sent: every direction has its way back, no
ring has the bytes of another, and the slots fit.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.collectives.direction import Directions
from tilewright.collectives.group import Group, RankPlaces
from tilewright.collectives.kernel import direction_to
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.errors import CollectiveError, OutOfMemoryError
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.post import Post
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.launch import Pending
from tilewright.runtime.launch.send import RingSpace, Space, tell_rings
from tilewright.runtime.request import Request

Edge = tuple[int, int]  # a rank and a peer that it sends to

Wiring = frozenset[Edge] | Directions
"""Ranks that exchange, or the named directions of ranks."""

Place = Callable[[PeCoord], int]
"""Allocates a ring at a receiver and returns its address."""


class RingKey(NamedTuple):
    """What rings are for: a set of them is installed once."""

    group: Group
    wiring: Wiring
    lanes: tuple[int, ...]
    spec: RingSpec


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """Rings of a group: whom each direction of a PE leads to, and where rings in memories begin."""

    group: str
    ranks: tuple[tuple[PeCoord, ...], ...]
    neighbours: Neighbours

    @property
    def num_rings(self) -> int:
        """Rings of all PEs, each counted at its sender, however many names it has."""
        return sum(len(directions) for directions in self.neighbours.table.values())

    def directions_of(self, rank: int) -> dict[str, int]:
        """Return the rank that each direction of a rank leads to; ``rankN`` is always there."""
        first = self.ranks[rank][0]
        rank_of = {pe: number for number, pes in enumerate(self.ranks) for pe in pes}
        named = {name: rank_of[peer] for name, peer in self.neighbours.table.get(first, {}).items()}
        aliases = self.neighbours.aliases.get(first, {})
        return named | {alias: named[name] for alias, name in aliases.items()}


def plan_install(key: RingKey, place: Place) -> InstallPlan:
    """Plan rings both ways between ranks that exchange."""
    group, wiring = key.group, key.wiring
    if isinstance(wiring, Directions):
        neighbours = _named_rings(key, wiring, place)
    else:
        neighbours = _pair_rings(key, wiring, place)
    plan = InstallPlan(group.name, group.ranks, neighbours)
    check_install(plan)
    return plan


def _pair_rings(key: RingKey, edges: Iterable[Edge], place: Place) -> Neighbours:
    """Plan a ring each way between ranks that exchange, called by the rank at the other end."""
    pairs = {frozenset(edge) for edge in edges}
    table: dict[PeCoord, dict[str, PeCoord]] = {}
    addresses: dict[tuple[PeCoord, str], int] = {}
    for lane in key.lanes:
        for low, high in sorted(tuple(sorted(pair)) for pair in pairs):
            for rank, peer in ((low, high), (high, low)):
                sender, receiver = (key.group.ranks[each][lane] for each in (rank, peer))
                table.setdefault(sender, {})[direction_to(peer)] = receiver
                addresses[receiver, direction_to(rank)] = place(receiver)
    return Neighbours(table, key.spec, addresses)


def _named_rings(key: RingKey, directions: Directions, place: Place) -> Neighbours:
    """Plan a ring for each direction of a rank; ``rankN`` is its second name."""
    table: dict[PeCoord, dict[str, PeCoord]] = {}
    aliases: dict[PeCoord, dict[str, str]] = {}
    ranks = key.group.ranks
    for lane in key.lanes:
        for rank, named in enumerate(directions.by_rank):
            if named:
                sender = ranks[rank][lane]
                table[sender] = {name: ranks[peer][lane] for name, peer in named}
                aliases[sender] = directions.aliases(rank)
    neighbours = Neighbours(table, key.spec, {}, aliases)
    addresses = {
        neighbours.arrives_at(sender, name): place(receiver)
        for sender, ways in table.items()
        for name, receiver in ways.items()
    }
    return replace(neighbours, addresses=addresses)


def check_install(plan: InstallPlan) -> None:
    """Refuse a plan with a direction that has no way back, or with rings in one place."""
    where = f"rings of group {plan.group!r}"
    table, spec = plan.neighbours.table, plan.neighbours.ring
    taken: dict[PeCoord, list[range]] = {}
    for sender, directions in table.items():
        for direction, peer in directions.items():
            back = [name for name, other in table.get(peer, {}).items() if other == sender]
            if not back:
                found = f"{direction!r} of {place_name(sender)} to {place_name(peer)}, not back"
                raise CollectiveError(where, found, "a direction each way", "add the other")
    if spec.kind is RingKind.TCM:
        return
    for (receiver, direction), address in plan.neighbours.addresses.items():
        span = range(address, address + spec.num_bytes)
        for other in taken.setdefault(receiver, []):
            if span.start < other.stop and other.start < span.stop:
                found = f"{direction!r} of {place_name(receiver)} in the bytes of another ring"
                raise CollectiveError(where, found, "a place of its own", "move one of them")
        taken[receiver].append(span)


@dataclass(eq=False)
class _Installed:
    """A set of rings, and who uses it."""

    plan: InstallPlan
    post: Post
    request: Request
    spaces: tuple[Space, ...]
    calls: Counter[int] = field(default_factory=Counter)  # by rank
    launches: list[Pending] = field(default_factory=list)  # that may be under way
    num_launches: int = 0  # so far
    is_kept: bool = False  # the user has asked for it

    def is_idle(self, num_ranks: int) -> bool:
        """Whether every rank has made as many calls as every other, and all of them are over."""
        is_met = len({self.calls[rank] for rank in range(num_ranks)}) == 1
        is_launched = self.num_launches == self.calls.total()
        is_over = all(each.is_completed for each in self.launches)
        return is_met and is_launched and is_over and not self.is_kept


class RingBook:
    """All rings of a context: each set is installed once, and used until others need its room."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._rings: dict[RingKey, _Installed] = {}  # the one that was used last is the last
        self._fixed: dict[tuple[str, tuple[RankPlaces, ...]], Group] = {}  # of `install`
        self._space = RingSpace(driver)
        self.plans: list[InstallPlan] = []  # of those that there are
        driver.add_end_listener(self._forget_calls)

    def rings(
        self,
        group: Group,
        edges: frozenset[Edge],
        lanes: tuple[int, ...],
        spec: RingSpec,
        rank: int,
    ) -> Post:
        """For a call of a rank; the first who asks sends for them, and all wait until then."""
        return self._installed(RingKey(group, edges, lanes, spec), calling=rank).post

    def note_launch(self, post: Post, launch: Pending) -> None:
        """The launch uses these rings; until it is over nobody else gets their room."""
        for installed in self._rings.values():
            if installed.post is post:
                under_way = [each for each in installed.launches if not each.is_completed]
                installed.launches = [*under_way, launch]
                installed.num_launches += 1

    def _forget_calls(self) -> None:
        """Count calls anew: an error has ended those that were under way. Rings stay installed."""
        for installed in self._rings.values():
            installed.calls.clear()
            installed.launches.clear()
            installed.num_launches = 0

    def install(
        self, group: Group, wiring: Wiring, lanes: tuple[int, ...], spec: RingSpec
    ) -> InstallPlan:
        """Install rings without a process group, and make them the default of later launches.

        Rings of the same name, ranks and directions are installed once; a second installation
        takes no time, and makes them the default again.
        """
        known = self._fixed.setdefault((group.name, group.ranks), group)
        found = self._installed(RingKey(known, wiring, lanes, spec), is_kept=True)
        pes = [pe for rank in group.ranks for pe in rank]
        self._driver.installed.update(dict.fromkeys(pes, found.post))
        return found.plan

    def post_of(self, plan: InstallPlan) -> Post:
        """Return the rings of a plan that ``install`` has returned; refuse any other."""
        for installed in self._rings.values():
            if installed.plan is plan and installed.is_kept:
                return installed.post
        found = f"the install plan of {plan.group!r}, whose rings this context does not have"
        fix = "pass the plan that install_ipcq of this context has returned"
        raise CollectiveError("neighbours", found, "an installed plan", fix)

    def _installed(
        self, key: RingKey, calling: int | None = None, *, is_kept: bool = False
    ) -> _Installed:
        if key not in self._rings:
            plan, spaces = self._planned(key)
            self.plans.append(plan)
            post = self._driver.launcher.install(plan.neighbours, is_exclusive=is_kept)
            request = tell_rings(self._driver, f"rings of {key.group.name}", plan.neighbours)
            self._rings[key] = _Installed(plan, post, request, spaces, is_kept=is_kept)
        found = self._rings[key] = self._rings.pop(key)
        if calling is not None:
            found.calls[calling] += 1
        self._driver.wait(found.request)
        return found

    def _planned(self, key: RingKey) -> tuple[InstallPlan, tuple[Space, ...]]:
        """Plan rings and allocate them; rings that nobody uses make way, the oldest first."""
        while True:
            spaces: list[Space] = []

            def place(pe: PeCoord, spaces: list[Space] = spaces) -> int:
                spaces.append(self._space.allocate(key.spec, pe, f"a ring of {key.group.name}"))
                return spaces[-1].address

            try:
                return plan_install(key, place), tuple(spaces)
            except OutOfMemoryError as error:
                self._space.free(spaces)
                for old, installed in self._rings.items():  # the one that was used last is last
                    is_like = old.spec.kind is key.spec.kind
                    if is_like and installed.is_idle(old.group.size):
                        self._free(old)
                        break
                else:
                    fix = "use fewer or smaller slots, other algorithms, or another buffer_kind"
                    found, expected = str(error), "room for rings that are in use"
                    raise CollectiveError("rings", found, expected, fix) from error

    def forget(self, groups: Container[Group]) -> None:
        """Free the rings of groups that nobody calls any more, if they are in a TCM and idle.

        What a ring in SRAM or HBM occupies decides where later tensors lie: it stays until its room
        is needed.
        """
        for key, installed in list(self._rings.items()):
            is_idle = key.group in groups and installed.is_idle(key.group.size)
            if is_idle and key.spec.kind is RingKind.TCM:
                self._free(key)

    def _free(self, key: RingKey) -> None:
        installed = self._rings.pop(key)
        self.plans.remove(installed.plan)
        self._space.free(installed.spaces)
        self._driver.launcher.give_back(installed.post)
