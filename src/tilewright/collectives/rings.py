"""Rings between the PEs of a group: which there must be, where their slots are, who is told.

An install plan is frozen and checked before a message is sent: every direction has its way back, no
ring has the bytes of another, and the slots fit.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tilewright.collectives.group import Group, RankPlaces
from tilewright.collectives.kernel import direction_to
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.errors import CollectiveError, OutOfMemoryError
from tilewright.language.message import Neighbours, Post
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.allocator import Allocator
from tilewright.memory.place import MemoryKind, MemoryPlace
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch import tell_rings
from tilewright.runtime.pending import Pending
from tilewright.runtime.request import Request

__all__ = ("Edge", "InstallPlan", "RingBook", "check_install", "plan_install")

SRAM_ALIGNMENT = 64  # of rings, so that they share pages

Edge = tuple[int, int]  # a rank and a peer that it sends to

RingKey = tuple[Group, frozenset[Edge], tuple[int, ...], RingSpec]


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """What PEs are told: whom each direction leads to, and where the rings of a memory begin."""

    group: str
    ranks: tuple[tuple[PeCoord, ...], ...]
    neighbours: Neighbours

    @property
    def num_rings(self) -> int:
        return sum(len(directions) for directions in self.neighbours.table.values())


def plan_install(
    group: Group,
    edges: Iterable[Edge],
    lanes: Iterable[int],
    spec: RingSpec,
    place_ring: Callable[[PeCoord, int], int],
) -> InstallPlan:
    """Rings both ways between ranks that exchange; ``place_ring`` finds room at a receiver."""
    pairs = {frozenset(edge) for edge in edges}
    table: dict[PeCoord, dict[str, PeCoord]] = {}
    addresses: dict[tuple[PeCoord, str], int] = {}
    for lane in lanes:
        for low, high in sorted(tuple(sorted(pair)) for pair in pairs):
            for rank, peer in ((low, high), (high, low)):
                sender, receiver = group.ranks[rank][lane], group.ranks[peer][lane]
                table.setdefault(sender, {})[direction_to(peer)] = receiver
                address = place_ring(receiver, spec.num_bytes)
                addresses[receiver, direction_to(rank)] = address
    plan = InstallPlan(group.name, group.ranks, Neighbours(table, spec, addresses))
    check_install(plan)
    return plan


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


Space = tuple[PeCoord, int, int]  # of a ring: at which receiver, from which byte on, how many


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
        self._tcms: dict[PeCoord, Allocator] = {}
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
        found = self._installed((group, edges, lanes, spec), calling=rank)
        return found.post

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
        self, group: Group, edges: frozenset[Edge], lanes: tuple[int, ...], spec: RingSpec
    ) -> InstallPlan:
        """Rings without a process group; those of the same name and ranks are installed once."""
        known = self._fixed.setdefault((group.name, group.ranks), group)
        found = self._installed((known, edges, lanes, spec))
        found.is_kept = True
        return found.plan

    def _installed(self, key: RingKey, calling: int | None = None) -> _Installed:
        if key not in self._rings:
            group, edges, lanes, spec = key
            plan, spaces = self._planned(group, edges, lanes, spec)
            self.plans.append(plan)
            post = self._driver.launcher.install(plan.neighbours)
            request = tell_rings(self._driver, f"rings of {group.name}", plan.neighbours)
            self._rings[key] = _Installed(plan, post, request, spaces)
        found = self._rings[key] = self._rings.pop(key)
        if calling is not None:
            found.calls[calling] += 1
        self._driver.wait(found.request)
        return found

    def _planned(
        self, group: Group, edges: frozenset[Edge], lanes: tuple[int, ...], spec: RingSpec
    ) -> tuple[InstallPlan, tuple[Space, ...]]:
        """A plan with room for its rings; those that nobody uses make way, the oldest first."""
        while True:
            spaces: list[Space] = []

            def place(pe: PeCoord, num_bytes: int, spaces: list[Space] = spaces) -> int:
                requester = f"a ring of {group.name}"
                alignment = SRAM_ALIGNMENT if spec.kind is RingKind.SRAM else None
                address = self._memory(spec, pe).allocate(
                    num_bytes, requester=requester, alignment=alignment
                )
                spaces.append((pe, address, num_bytes))
                return address

            try:
                return plan_install(group, edges, lanes, spec, place), tuple(spaces)
            except OutOfMemoryError as error:
                self._give_back(spec, spaces)
                if not self._free_one(spec):
                    fix = "use fewer or smaller slots, other algorithms, or another buffer_kind"
                    found, expected = str(error), "room for rings that are in use"
                    raise CollectiveError("rings", found, expected, fix) from error

    def _free_one(self, spec: RingSpec) -> bool:
        """Of the rings in the same memory, those that have been idle for longest."""
        for key, installed in self._rings.items():
            group, _, _, other = key
            if other.kind is spec.kind and installed.is_idle(group.size):
                del self._rings[key]
                self.plans.remove(installed.plan)
                self._give_back(other, installed.spaces)
                return True
        return False

    def _give_back(self, spec: RingSpec, spaces: Iterable[Space]) -> None:
        for pe, address, num_bytes in spaces:
            self._memory(spec, pe).free(address, num_bytes)

    def _memory(self, spec: RingSpec, pe: PeCoord) -> Allocator:
        """That of a receiver which its rings are in."""
        machine, memory = self._driver.machine, self._driver.memory
        match spec.kind:
            case RingKind.TCM:
                name, size = f"{place_name(pe)}.tcm", machine.spec.pe.tcm.reserved_bytes
                return self._tcms.setdefault(pe, Allocator(name, size))
            case RingKind.SRAM:
                return memory.allocator(MemoryPlace.of(MemoryKind.SRAM, pe))
            case RingKind.HBM:
                return memory.allocator(MemoryPlace(MemoryKind.HBM, pe))
