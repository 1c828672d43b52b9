"""Which PEs the ranks of a world are, and where the directions of their rings lead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import isqrt
from typing import Any

from tilewright.collectives.direction import Directions, Topology, parse_topology, plan_directions
from tilewright.collectives.rings import Edge
from tilewright.errors import CollectiveError
from tilewright.interop.kernbench.ccl.algorithms.intercube_allreduce import (
    RING_1D,
    SIP_TOPOLOGY_KINDS,
)
from tilewright.interop.kernbench.ccl.config import Algorithm, AlgorithmConfig
from tilewright.interop.kernbench.value import whole_number
from tilewright.machine.build import Machine
from tilewright.machine.coords import Grid, PeCoord

INTERCUBE = "intercube"
HIERARCHICAL = "hierarchical"
FABRIC_EXCHANGES: Mapping[str, str] = {
    "switch": "ring_1d",
    "ring": "ring_1d",
    "torus": "torus_2d",
    "mesh": "mesh_2d_no_wrap",
}
KERNBENCH_NAMES: Mapping[str, str] = {"mesh_2d": "torus_2d"}  # the name runs a torus there

Place = tuple[int, int, int]
"""SIP, cube, PE."""

NUM_COORDINATES = 3


@dataclass(frozen=True, slots=True)
class RankWorld:
    """The PE of each rank. Where ranks are SIPs it is PE 0 of cube 0, which stands for the SIP."""

    pes: tuple[PeCoord, ...]
    ranks_are_sips: bool

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.pes)


@dataclass(frozen=True, slots=True)
class Wiring:
    """PEs that have rings, in the order in which ``directions`` numbers them."""

    pes: tuple[PeCoord, ...]
    directions: Directions | frozenset[Edge]  # edges: the ranks that exchange, by rankN alone


@dataclass(frozen=True, slots=True)
class SipExchange:
    """How root cubes of SIPs exchange: topology, columns and rows of SIPs."""

    name: str
    columns: int
    rows: int

    @property
    def kind(self) -> int:
        """The number by which the intercube kernel knows the topology."""
        return SIP_TOPOLOGY_KINDS[self.name]


def plan_world(
    where: str,
    grid: Grid,
    sips: Sequence[int],
    world_size: int | None,
    rank_to_pe: Sequence[Place] | None = None,
    *,
    sips_first: bool,
) -> RankWorld:
    """Decide which PE each rank is.

    ``rank_to_pe`` names them. Else ranks are the first SIPs if ``sips_first`` and there are enough,
    or the first PEs in the order of coordinates. A ``world_size`` of None is all of them.
    """
    if rank_to_pe is not None:
        return RankWorld(_named_pes(where, grid, world_size, rank_to_pe), ranks_are_sips=False)
    all_pes = [pe for pe in grid.pes() if pe.sip in sips]
    if sips_first and (world_size is None or world_size <= len(sips)):
        chosen = sips[: len(sips) if world_size is None else world_size]
        return RankWorld(tuple(PeCoord(sip, 0, 0) for sip in chosen), ranks_are_sips=True)
    size = len(all_pes) if world_size is None else world_size
    if not 1 <= size <= len(all_pes):
        found, expected = f"world_size={size}", f"1 to {len(all_pes)}, the PEs of the device"
        raise CollectiveError(where, found, expected, "correct it, or take a larger machine")
    return RankWorld(tuple(all_pes[:size]), ranks_are_sips=False)


def _named_pes(
    where: str, grid: Grid, world_size: int | None, rank_to_pe: Sequence[Place]
) -> tuple[PeCoord, ...]:
    pes = tuple(_named_pe(where, each) for each in rank_to_pe)
    wrong = [pe for pe in pes if not grid.has(pe)]
    if wrong:
        found, fix = f"rank_to_pe with {wrong[0]}", "correct the map"
        raise CollectiveError(where, found, "PEs of the machine", fix)
    if world_size is not None and world_size > len(pes):
        found = f"PEs of {len(pes)} ranks for world_size={world_size}"
        raise CollectiveError(where, found, "a PE for each rank", "correct the map")
    return pes[:world_size]


def _named_pe(where: str, place: Any) -> PeCoord:
    if isinstance(place, PeCoord):
        return place
    if not isinstance(place, Sequence) or isinstance(place, str) or len(place) != NUM_COORDINATES:
        found, fix = f"rank_to_pe with {place!r}", "write one like (0, 0, 0)"
        raise CollectiveError(where, found, "(sip, cube, pe) for each rank", fix)
    numbers = tuple(whole_number(each) for each in place)
    if None in numbers:
        found, fix = f"rank_to_pe with {place!r}", "correct the map"
        raise CollectiveError(where, found, "three whole numbers", fix)
    return PeCoord(*numbers)  # type: ignore[arg-type]  # none is None


def sip_exchange(
    where: str, machine: Machine, config: Mapping[str, Any], num_sips: int
) -> SipExchange:
    """Decide how SIPs exchange: by the entry's topology, else as the machine joins them.

    Columns are those of a machine whose SIPs are a torus or mesh, else those of a square; a world
    that is no square is refused.
    """
    fabric = machine.spec.fabric
    asked = str(config.get("topology"))
    name = asked if asked in SIP_TOPOLOGY_KINDS else FABRIC_EXCHANGES[fabric.kind]
    if SIP_TOPOLOGY_KINDS[name] == RING_1D:
        return SipExchange(name, num_sips, 1)
    is_joined_so = num_sips == machine.grid.num_sips and fabric.kind in ("torus", "mesh")
    columns = fabric.columns or num_sips if is_joined_so else isqrt(num_sips)
    if not is_joined_so and columns**2 != num_sips:
        found = f"{num_sips} SIPs on a {name} whose columns nobody has said"
        fix = "set fabric.columns of a torus or mesh machine, or topology: ring_1d in ccl.yaml"
        raise CollectiveError(where, found, "rows and columns of SIPs", fix)
    return SipExchange(name, columns, num_sips // columns)


def plan_wiring(
    where: str, machine: Machine, algorithm: Algorithm, config: AlgorithmConfig, world: RankWorld
) -> Wiring:
    """Decide which rings a world needs.

    The topology is the entry's, else the module's, else none: a ring from every rank to every
    other, named ``rankN``. A module for cubes has rings between PE 0 of all cubes of its SIPs, or
    between PEs of one number where all PEs are ranks; one for three levels has rings in each level.
    """
    if algorithm.topology == INTERCUBE and (world.ranks_are_sips or "topology" not in config):
        return _intercube_wiring(where, machine, config, world)
    if algorithm.topology == HIERARCHICAL:
        return _hierarchical_wiring(where, machine.grid, world)
    name = config.get("topology", algorithm.topology) or "none"
    topology = parse_topology(config.where("topology"), KERNBENCH_NAMES.get(name, name))
    if topology is Topology.NONE:
        return Wiring(world.pes, frozenset(permutations(range(world.size), 2)))
    shape = config.get("w"), config.get("h")
    return Wiring(world.pes, plan_directions(where, topology, world.size, shape))


def _intercube_wiring(
    where: str, machine: Machine, config: AlgorithmConfig, world: RankWorld
) -> Wiring:
    """Join the cubes of a SIP to a mesh, and each cube to the same cube of other SIPs.

    Their PEs 0 have the rings where ranks are SIPs, else all PEs.
    """
    grid = machine.grid
    sips = tuple(dict.fromkeys(rank.sip for rank in world.pes))
    all_pes = tuple(pe for pe in grid.pes() if pe.sip in sips)
    if not world.ranks_are_sips and world.pes != all_pes:
        found = f"rings between cubes for {world.size} ranks that are PEs"
        expected = f"all {len(all_pes)} PEs of the SIPs, in the order of coordinates"
        fix = "say topology: ring_1d in its entry, or name an algorithm such as ring_allreduce_tcm"
        raise CollectiveError(where, found, expected, fix)
    exchange = sip_exchange(where, machine, config, len(sips))
    cubes = range(grid.num_cubes_per_sip)
    pes = tuple(PeCoord(sip, cube, 0) for sip in sips for cube in cubes)
    mesh = machine.spec.sip
    directions = plan_directions(
        where, Topology.MESH_2D_NO_WRAP, len(pes), (mesh.columns, mesh.rows),
        sips=[pe.sip for pe in pes],
        global_topology=Topology(KERNBENCH_NAMES.get(exchange.name, exchange.name)),
        sip_shape=(exchange.columns, exchange.rows),
    )  # fmt: skip
    if world.ranks_are_sips:
        return Wiring(pes, directions)
    return Wiring(world.pes, _for_each_pe(directions, grid.num_pes_per_cube))


def _for_each_pe(cubes: Directions, num_pes: int) -> Directions:
    """Return directions between cubes as those between the PEs of one number in them.

    >>> _for_each_pe(Directions(((("E", 1),), (("W", 0),))), 2).by_rank
    ((('E', 2),), (('E', 3),), (('W', 0),), (('W', 1),))
    """
    return Directions(
        tuple(
            tuple((name, peer * num_pes + pe) for name, peer in named)
            for named in cubes.by_rank
            for pe in range(num_pes)
        )
    )


def _hierarchical_wiring(where: str, grid: Grid, world: RankWorld) -> Wiring:
    """Join PEs and cubes of each SIP to a torus, and SIPs to a ring."""
    pes = world.pes
    num_pes = min(world.size, grid.num_pes_per_cube)
    cubes = {(pe.sip, pe.cube) for pe in pes}
    num_cubes = len(cubes) // len({pe.sip for pe in pes})
    if world.ranks_are_sips or num_pes * len(cubes) != world.size:
        found = f"{world.size} ranks" + (" that are SIPs" if world.ranks_are_sips else "")
        expected = f"whole cubes of {grid.num_pes_per_cube} PEs, as many in each SIP"
        fix = "set world_size to all PEs of some cubes, or use intercube_allreduce"
        raise CollectiveError(where, found, expected, fix)
    directions = plan_directions(
        where, Topology.TORUS_2D, len(pes), (num_pes, num_cubes),
        sips=[pe.sip for pe in pes], global_topology=Topology.RING_1D,
    )  # fmt: skip
    return Wiring(pes, directions)
