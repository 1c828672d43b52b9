"""Rings of an algorithm for ranks that need no process group: planned, checked, sent to the PEs."""

from pathlib import Path

from tilewright.collectives.choose import placed_call
from tilewright.collectives.config import CollectiveConfig, parse_config
from tilewright.collectives.group import Group
from tilewright.collectives.operation import Call
from tilewright.collectives.option import RingOptions
from tilewright.collectives.plan import Move
from tilewright.collectives.rank_map import RankMap, num_mapped_ranks, places_of_ranks
from tilewright.collectives.rings import Edge, InstallPlan, RingBook
from tilewright.collectives.run import NUM_VARIANTS
from tilewright.collectives.table import AUTO_ALGORITHM, Algorithm, checked_plan
from tilewright.errors import CollectiveError
from tilewright.machine.build import Machine

__all__ = ("install_rings",)

WHERE = "install_ipcq"


def install_rings(
    machine: Machine,
    book: RingBook,
    algorithm: str | None,
    ccl_yaml: str | Path | None,
    world_size: int | None,
    rank_to_pe: RankMap | None,
    options: RingOptions,
) -> InstallPlan:
    """Rings that an algorithm needs, once for all calls; a second installation changes nothing.

    ``options`` go before what the file says of the algorithm.
    """
    config = parse_config(ccl_yaml)
    name = algorithm or config.algorithm
    if name == AUTO_ALGORITHM:  # no call, so nothing to choose by: the first that there is
        name = next(iter(config.algorithms))
    chosen = config.algorithms.get(name)
    if chosen is None:
        expected = f"one of {', '.join(config.algorithms)}"
        raise CollectiveError(WHERE, f"the algorithm {name!r}", expected, "name one of these")
    size = _world_size(machine, config, name, world_size, rank_to_pe)
    places = places_of_ranks(machine.grid, size, rank_to_pe)
    group = Group(f"rings of {name}", places, tuple(range(size)))
    lanes = tuple(range(len(places[0])))
    ring = options.over(config.ring_of(name)).spec()
    return book.install(group, _edges(machine, group, chosen), lanes, ring)


def _world_size(
    machine: Machine,
    config: CollectiveConfig,
    name: str,
    override: int | None,
    rank_to_pe: RankMap | None,
) -> int:
    """What the call says, then the algorithm's entry, then the map, then the SIPs."""
    if override is not None:
        return override
    if name in config.world_sizes:
        return config.world_sizes[name]
    return machine.grid.num_sips if rank_to_pe is None else num_mapped_ranks(rank_to_pe)


def _edges(machine: Machine, group: Group, algorithm: Algorithm) -> frozenset[Edge]:
    """Whom ranks send to in all operations of the algorithm."""
    edges: set[Edge] = set()
    for operation in algorithm.operations:
        call = placed_call(Call(operation, group.size), group, machine)
        for variant in range(min(NUM_VARIANTS, len(group.ranks[0]))):
            plan = checked_plan(algorithm, call, variant).plan
            for rank, steps in enumerate(plan.steps):
                edges.update((rank, step.peer) for step in steps if step.move is Move.SEND)
    return frozenset(edges)
