"""Rings between the PEs of a group: which there must be, where their slots are, who is told.

An install plan is frozen and checked before a message is sent: every direction has its way back, no
ring has the bytes of another, and the slots fit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tilewright.collectives.group import Group, RankPlaces
from tilewright.collectives.kernel import direction_to
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.errors import CollectiveError
from tilewright.language.message import Neighbours, Post
from tilewright.machine.coords import CubeCoord, PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.allocator import Allocator
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch import tell_rings
from tilewright.runtime.request import Request

__all__ = ("InstallPlan", "RingBook", "check_install", "plan_install")

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


class RingBook:
    """All rings of a context: each set is installed once, and used from then on."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._rings: dict[RingKey, tuple[InstallPlan, Post, Request]] = {}
        self._fixed: dict[tuple[str, tuple[RankPlaces, ...]], Group] = {}  # of `install`
        self._tcm_used: dict[PeCoord, int] = {}
        self._srams: dict[CubeCoord, Allocator] = {}
        self.plans: list[InstallPlan] = []

    def rings(
        self, group: Group, edges: frozenset[Edge], lanes: tuple[int, ...], spec: RingSpec
    ) -> Post:
        """Rings for these exchanges; the first who asks sends for them, and all wait until then."""
        return self._installed(group, edges, lanes, spec)[1]

    def install(
        self, group: Group, edges: frozenset[Edge], lanes: tuple[int, ...], spec: RingSpec
    ) -> InstallPlan:
        """Rings without a process group; those of the same name and ranks are installed once."""
        known = self._fixed.setdefault((group.name, group.ranks), group)
        return self._installed(known, edges, lanes, spec)[0]

    def _installed(
        self, group: Group, edges: frozenset[Edge], lanes: tuple[int, ...], spec: RingSpec
    ) -> tuple[InstallPlan, Post]:
        key = group, edges, lanes, spec
        if key not in self._rings:
            plan = plan_install(group, edges, lanes, spec, self._place(spec))
            self.plans.append(plan)
            post = self._driver.launcher.install(plan.neighbours)
            what = f"rings of {group.name}"
            self._rings[key] = plan, post, tell_rings(self._driver, what, plan.neighbours)
        plan, post, request = self._rings[key]
        self._driver.wait(request)
        return plan, post

    def _place(self, spec: RingSpec) -> Callable[[PeCoord, int], int]:
        places: Mapping[RingKind, Callable[[PeCoord, int], int]] = {
            RingKind.TCM: self._in_tcm,
            RingKind.SRAM: self._in_sram,
            RingKind.HBM: self._in_hbm,
        }
        return places[spec.kind]

    def _in_tcm(self, pe: PeCoord, num_bytes: int) -> int:
        room = self._driver.machine.spec.pe.tcm.reserved_bytes
        address = self._tcm_used.get(pe, 0)
        if address + num_bytes > room:
            found = f"{num_bytes} bytes for another ring in {place_name(pe)}, {address} used"
            fix = "use fewer or smaller slots, other algorithms, or buffer_kind sram or hbm"
            raise CollectiveError("rings", found, f"at most {room} in the reserved TCM", fix)
        self._tcm_used[pe] = address + num_bytes
        return address

    def _in_sram(self, pe: PeCoord, num_bytes: int) -> int:
        cube = pe.cube_coord
        if cube not in self._srams:
            size = self._driver.machine.addresses.sram_bytes
            self._srams[cube] = Allocator(f"{place_name(cube)}.sram", size, alignment=64)
        return self._srams[cube].allocate(num_bytes, requester="a ring")

    def _in_hbm(self, pe: PeCoord, num_bytes: int) -> int:
        return self._driver.memory.allocator(pe).allocate(num_bytes, requester="a ring")
