"""Which module of ours each module path of KernBench stands for."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Never

from tilewright.errors import ProgramError
from tilewright.interop.foreign_names import ForeignNames, public_names
from tilewright.interop.kernbench.detection import PACKAGE
from tilewright.interop.kernbench.registry import ProgramRegistry

_OURS = "tilewright.interop.kernbench"

MODULES: Mapping[str, str] = MappingProxyType(
    {
        "runtime_api.context": "context",
        "runtime_api.types": "device",
        "runtime_api.tensor": "tensor",
        "runtime_api.kernel": "message",
        "runtime_api.distributed": "distributed",
        "runtime_api.multiprocessing": "multiprocessing",
        "runtime_api.bench_runner": "bench_runner",
        "common.types": "request",
        "common.pe_commands": "pe_command",
        "common.ipcq_types": "ipcq_type",
        "policy.placement.dp": "placement",
        "policy.address.phyaddr": "physical_address",
        "policy.address.allocator": "allocator",
        "policy.address.va_allocator": "virtual_allocator",
        "policy.address.pe_mmu": "pe_mmu",
        "policy.routing.router": "router",
        "topology.builder": "topology",
        "sim_engine.engine": "engine",
        "triton_emu.tl_context": "language",
        "ccl.install": "ccl.install",
        "ccl.sfr_config": "ccl.sfr_config",
        "ccl.algorithms.ring_allreduce": "ccl.algorithms.ring_allreduce",
        "ccl.algorithms.tree_allreduce": "ccl.algorithms.tree_allreduce",
        "ccl.algorithms.mesh_allreduce": "ccl.algorithms.mesh_allreduce",
        "ccl.algorithms.hierarchical_allreduce": "ccl.algorithms.hierarchical_allreduce",
        "ccl.algorithms.intercube_allreduce": "ccl.algorithms.intercube_allreduce",
        "tp.parallel_state": "tp.parallel_state",
        "tp.layers": "tp.layers",
    }
)
"""Paths below ``kernbench``, and our modules; a path has the names of the module's ``__all__``."""

REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "cli.main": (("main",), "use the command line: tilewright run FILE"),
        "probes.probe": (("run_probe", "main"), "use the command line: tilewright probe"),
    }
)
"""Paths whose names are importable and say, when they are used, what to use instead."""


def build_names(registry: ProgramRegistry) -> ForeignNames:
    """Return the module paths of KernBench for one program, with its own registry."""
    table: dict[str, Mapping[str, object]] = {
        path: public_names(import_module(f"{_OURS}.{module}")) for path, module in MODULES.items()
    }
    for path, (names, instead) in REFUSED.items():
        table[path] = {name: _refused(f"{PACKAGE}.{path}.{name}", instead) for name in names}
    table["benches.registry"] = {
        "bench": registry.bench,
        "resolve": registry.resolve,
        "list_all": registry.list_all,
    }
    table["triton_emu.registry"] = {
        "register_kernel": registry.register_kernel,
        "_kernels": registry.kernels,
    }
    return ForeignNames(PACKAGE, table)


def _refused(name: str, instead: str) -> object:
    """Return a class that cannot be made, called or asked for anything."""

    class Refused:
        def __new__(cls, *_args: Any, **_kwargs: Any) -> Never:
            raise ProgramError(name, "a use of it", "names that programs need", instead)

    Refused.__name__ = Refused.__qualname__ = name.rpartition(".")[2]
    return Refused
