"""Rings of KernBench programs: ``kernbench.ccl.install`` and ``kernbench.ccl.sfr_config``."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.collectives.group import Group
from tilewright.collectives.rings import InstallPlan
from tilewright.collectives.tuning import RING_KEYS, parse_ring
from tilewright.device.ipcq import RingSpec
from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.kernbench.ccl.config import Algorithm, AlgorithmConfig, load_algorithm
from tilewright.interop.kernbench.ccl.wiring import Place, Wiring, plan_wiring, plan_world
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.value import dtype_itemsize

# ruff: noqa: ARG001 - signatures are those of KernBench; the engine has the machine

INSTALL = "install_ipcq"
F16_BYTES = dtype_itemsize("f16")


class IpcqPlan(dict[str, Any]):
    """A plan of installed rings: ``world_size``, ``rank_to_pe`` and ``neighbors``.

    ``rank_to_pe`` is (sip, cube, pe) by rank, ``neighbors`` by rank the rank in each direction.
    """

    def __init__(self, plan: InstallPlan) -> None:
        ranks = range(len(plan.ranks))
        places = {rank: plan.ranks[rank][0] for rank in ranks}
        super().__init__(
            world_size=len(ranks),
            rank_to_pe={rank: (pe.sip, pe.cube, pe.pe) for rank, pe in places.items()},
            neighbors={rank: plan.directions_of(rank) for rank in ranks},
        )
        self.plan = plan


def install_ipcq(
    engine: GraphEngine,
    spec: Mapping[str, Any] | None,
    merged: Mapping[str, Any],
    algo_module: Any = None,
    rank_to_pe: Sequence[Place] | None = None,
) -> IpcqPlan:
    """Install the rings of an algorithm on an engine's PEs; the next launches there use them.

    Ranks are the first ``world_size`` PEs in the order of coordinates, or those of ``rank_to_pe``.
    KernBench installs beside the fabric; here PEs are told by messages, so simulated time passes.
    """
    config = AlgorithmConfig.of_mapping(merged)
    host = engine.host
    algorithm = _algorithm(config, algo_module)
    grid = host.machine.grid
    size = config.get("world_size")
    world = plan_world(INSTALL, grid, host.device.sips, size, rank_to_pe, sips_first=False)
    wiring = plan_wiring(INSTALL, host.machine, algorithm, config, world)
    return IpcqPlan(install_wiring(host, config, wiring))


def _algorithm(config: AlgorithmConfig, module: Any) -> Algorithm:
    """Return the algorithm of a module that the caller has imported, else of the entry's."""
    if module is None:
        return load_algorithm(config)
    topology = getattr(module, "TOPOLOGY", None)
    return Algorithm(config.name, module.kernel, module.kernel_args, topology)


def install_wiring(host: HostContext, config: AlgorithmConfig, wiring: Wiring) -> InstallPlan:
    """Install rings as an entry of ``ccl.yaml`` says; a second time they are the default again.

    Slots are as the entry says, else 4 of ``n_elem`` f16 elements, else 4 of 4 KiB.
    """
    said = {key: config[key] for key in RING_KEYS if key in config}
    options = parse_ring(config.where(), said)
    n_elem = config.get("n_elem")
    least = None if n_elem is None else RingSpec(slot_bytes=n_elem * F16_BYTES)
    group = Group(
        f"rings of {config.name}", tuple((pe,) for pe in wiring.pes), tuple(range(len(wiring.pes)))
    )
    return host.distributed.book.install(group, wiring.directions, (0,), options.spec(least))


INTERCUBE_SETUP = "configure_sfr_intercube_multisip"
INTERCUBE = "kernbench.ccl.algorithms.intercube_allreduce"


def configure_sfr_intercube_multisip(
    engine: GraphEngine,
    spec: Mapping[str, Any] | None = None,
    merged: Mapping[str, Any] | None = None,
) -> IpcqPlan:
    """Install the directions N, S, E, W between cubes and global_N, S, E, W between SIPs.

    PE 0 of every cube has them; ``merged`` is an entry of ``ccl.yaml``, whose ``topology`` says how
    SIPs exchange. The ranks of the plan are these PEs.
    """
    config = AlgorithmConfig({**(merged or {}), "module": INTERCUBE}, "intercube", None)
    host = engine.host
    grid = host.machine.grid
    world = plan_world(INTERCUBE_SETUP, grid, host.device.sips, None, sips_first=True)
    wiring = plan_wiring(INTERCUBE_SETUP, host.machine, load_algorithm(config), config, world)
    return IpcqPlan(install_wiring(host, config, wiring))
