"""Direction registers between cubes and SIPs: ``kernbench.ccl.sfr_config``."""

from collections.abc import Mapping
from typing import Any

from tilewright.interop.kernbench.ccl.algorithm import load_algorithm
from tilewright.interop.kernbench.ccl.config import AlgorithmConfig
from tilewright.interop.kernbench.ccl.install import IpcqPlan, install_wiring
from tilewright.interop.kernbench.ccl.wiring import plan_wiring, plan_world
from tilewright.interop.kernbench.engine import GraphEngine

__all__ = ("configure_sfr_intercube_multisip",)

WHERE = "configure_sfr_intercube_multisip"
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
    del spec  # the engine has the machine
    config = AlgorithmConfig({**(merged or {}), "module": INTERCUBE}, "intercube", None)
    host = engine.host
    grid = host.machine.grid
    world = plan_world(WHERE, grid, host.device.sips, None, sips_first=True)
    wiring = plan_wiring(WHERE, host.machine, load_algorithm(config), config, world)
    return IpcqPlan(install_wiring(host, config, wiring))
