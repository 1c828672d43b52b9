"""Rings for kernels that need no process group: planned, checked, sent to the PEs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from tilewright.collectives.algorithm import AUTO_ALGORITHM, NUM_VARIANTS, Algorithm, checked_plan
from tilewright.collectives.choose import placed_call
from tilewright.collectives.config import AlgorithmEntry, CollectiveConfig
from tilewright.collectives.direction import Topology, plan_directions
from tilewright.collectives.group import (
    Group,
    RankMap,
    num_mapped_ranks,
    places_of_ranks,
    ranks_of_pes,
)
from tilewright.collectives.operation import Call
from tilewright.collectives.rings import Edge, InstallPlan, RingBook, Wiring
from tilewright.errors import CollectiveError
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord

WHERE = "install_ipcq"
"""The call that errors name."""


def install_rings(
    machine: Machine,
    book: RingBook,
    config: CollectiveConfig,
    said: AlgorithmEntry,
    pes: Sequence[PeCoord],
    rank_to_pe: RankMap | None = None,
    global_topology: Topology = Topology.NONE,
) -> InstallPlan:
    """Install rings and make them the default of later launches on their PEs.

    ``said`` are a caller's settings, of the default algorithm where it has no name; ``config`` has
    those that it leaves out. Ranks are ``pes`` in that order, one each; ``world_size`` takes the
    first of them, and ``rank_to_pe`` names others. Without a topology the rings are those of the
    algorithm's plans, named ``rankN``. Simulated time passes, unless they are there already.
    """
    name = said.name or config.algorithm
    if name == AUTO_ALGORITHM:  # no call, so nothing to choose by: the first that there is
        name = next(iter(config.algorithms))
    if name not in config.algorithms and name not in config.entries:
        expected = f"one of {', '.join(dict.fromkeys((*config.algorithms, *config.entries)))}"
        raise CollectiveError(WHERE, f"the algorithm {name!r}", expected, "name one of these")
    entry = replace(said, name=name).over(config.entry(name))
    size = entry.world_size
    if rank_to_pe is not None:
        size = num_mapped_ranks(rank_to_pe) if size is None else size
        places = places_of_ranks(machine.grid, size, rank_to_pe)
    else:
        places = ranks_of_pes(pes, size)
    group = Group(f"rings of {name}", places, tuple(range(len(places))))
    lanes = tuple(range(len(places[0])))
    wiring = _wiring(machine, group, entry, global_topology, config.algorithms.get(name))
    return book.install(group, wiring, lanes, entry.ring_spec)


def _wiring(
    machine: Machine,
    group: Group,
    entry: AlgorithmEntry,
    global_topology: Topology,
    algorithm: Algorithm | None,
) -> Wiring:
    """Return the directions of a topology, else the ranks that an algorithm's plans join."""
    topology = entry.topology or Topology.NONE
    if topology is Topology.NONE and global_topology is Topology.NONE:
        if algorithm is None or entry.is_foreign:
            found = f"the algorithm {entry.name!r} of module {entry.module!r} without a topology"
            names = ", ".join(each.value for each in Topology if each is not Topology.NONE)
            where = WHERE if entry.place is None else f"{entry.place}: algorithms.{entry.name}"
            fix = "say topology= in the call or in its entry"
            raise CollectiveError(where, found, f"one of {names}", fix)
        calls = [
            placed_call(Call(each, group.size), group, machine) for each in algorithm.operations
        ]
        variants = range(min(NUM_VARIANTS, len(group.ranks[0])))
        plans = (checked_plan(algorithm, *pair) for pair in product(calls, variants))
        return frozenset[Edge]().union(*(checked.plan.edges for checked in plans))
    sips = [pes[0].sip for pes in group.ranks]
    columns = machine.spec.fabric.columns
    sip_shape = (columns, None) if len(set(sips)) == machine.grid.num_sips else (None, None)
    return plan_directions(
        WHERE, topology, group.size, (entry.w, entry.h),
        sips=sips, global_topology=global_topology, sip_shape=sip_shape,
    )  # fmt: skip
