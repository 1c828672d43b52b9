"""The names that a program of KernBench imports, and what it registers by name.

KernBench has one registry a process, where the last registration wins. Here each program that is
loaded has its own, which `current_registry` finds while the program is loaded and run.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar

from tilewright.errors import ProgramError, RegistryError, meant
from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.foreign_names import ForeignNames
from tilewright.interop.kernbench.detection import PACKAGE
from tilewright.interop.kernbench.value import ValueProgramError
from tilewright.machine.build import Machine


class Refused:
    """A class that cannot be made, called or asked for anything."""

    refusal: ClassVar[tuple[str, str, str, str]]  # the parts of the error

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise ProgramError(*self.refusal)


class PeCommand(Refused):
    """A command of a PE. Only ``tl`` issues them: none is made by hand, and no list holds them."""

    refusal = (
        "PeCommand",
        "a PeCommand made by hand",
        "commands that tl issues as the kernel runs",
        "write a call of tl in a kernel, and launch it",
    )


_COMMANDS: Mapping[str, Mapping[str, str]] = {
    "common.pe_commands": {
        "DmaReadCmd": "tl.load(ptr, shape, dtype)",
        "DmaWriteCmd": "tl.store(ptr, handle)",
        "GemmCmd": "tl.dot(a, b)",
        "MathCmd": "an operator between handles, or tl.exp and the like,",
        "CompositeCmd": "tl.composite(op, a, b, out_ptr)",
        "WaitCmd": "tl.wait(handle)",
        "PeCpuOverheadCmd": "nothing: the machine file has the cost of a command; leave it out",
    },
    "common.ipcq_types": {
        "IpcqSendCmd": "tl.send(dir, src=handle)",
        "IpcqRecvCmd": "tl.recv(dir, shape, dtype)",
        "IpcqInitMsg": "tl.send and tl.recv behind torch.install_ipcq(...)",
        "IpcqDmaToken": "tl.send(dir, src=handle)",
    },
}
"""Commands by module path and name, with what a kernel says for each."""
_UNNEEDED = "a use of it", "names that programs need"
_OUTSIDE: Mapping[str, tuple[str, str, str, str]] = {
    "policy.routing.router": (
        "AddressResolver PathRouter",
        "a class without a counterpart",
        "a program that leaves routing to the machine",
        "remove it: the trace of a request has its path, `tilewright machine show` the links",
    ),
    "cli.main": ("main", *_UNNEEDED, "use the command line: tilewright run FILE"),
    "probes.probe": ("run_probe main", *_UNNEEDED, "use the command line: tilewright probe"),
}
"""By module path: names without a counterpart for programs, and the error's parts behind them."""


def _command(name: str, instead: str) -> type[Refused]:
    expected, fix = PeCommand.refusal[2], f"write {instead} in a kernel, and launch it"
    return type(name, (PeCommand,), {"refusal": (name, f"a {name} made by hand", expected, fix)})


REFUSED: Mapping[str, Mapping[str, type[Refused]]] = MappingProxyType(
    {
        path: {name: _command(name, instead) for name, instead in commands.items()}
        for path, commands in _COMMANDS.items()
    }
    | {
        path: {
            name: type(name, (Refused,), {"refusal": (f"{PACKAGE}.{path}.{name}", *parts)})
            for name in names.split()
        }
        for path, (names, *parts) in _OUTSIDE.items()
    }
)
"""Classes by module path below the package and name."""


_OURS = "tilewright.interop.kernbench"
_ALGORITHMS = [
    f"ccl.algorithms.{name}_allreduce" for name in ("ring", "tree", "mesh", "hierarchical")
]

NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "runtime_api.context": {"context": "RuntimeContext"},
        "runtime_api.types": {"value": "DeviceSelector resolve_device sips_of"},
        "runtime_api.tensor": {
            "tensor": "Tensor TensorShard deploy_tensor",
            "value": "dtype_itemsize",
        },
        "runtime_api.kernel": {
            "message": "KernelLaunchMsg KernelRef MemoryReadMsg MemoryWriteMsg MmuMapMsg"
            " MmuUnmapMsg PeDmaMsg ResponseMsg ScalarArg TensorArg TensorArgShard"
        },
        "runtime_api.distributed": {
            "distributed": "DistributedContext latest_distributed",
            "ccl.backend": "AhbmCCLBackend",
        },
        "runtime_api.multiprocessing": {"multiprocessing": "Multiprocessing SpawnException spawn"},
        "runtime_api.bench_runner": {"loading": "BenchResult run_bench"},
        "common.types": {"value": "Completion RequestHandle SimEngine"},
        "common.pe_commands": {
            "language.handle": "CompletionHandle TensorHandle",
            "names": "PeCommand",
        },
        "common.ipcq_types": {"language.handle": "RecvFuture"},
        "policy.placement.dp": {"placement": "DPPolicy ShardSpec resolve_dp_policy"},
        "policy.address.phyaddr": {"address": "PhysAddr"},
        "policy.address.allocator": {"allocator": "AddressConfig PEMemAllocator"},
        "policy.address.va_allocator": {"allocator": "VirtualAllocator"},
        "policy.address.pe_mmu": {"address": "PeMmu"},
        "topology.builder": {"topology": "Topology load_topology resolve_topology"},
        "sim_engine.engine": {"engine": "GraphEngine"},
        "triton_emu.tl_context": {"language.context": "TLContext"},
        "ccl.install": {
            "ccl.install": "IpcqPlan install_ipcq install_wiring",
            "ccl.config": "load_ccl_config resolve_algorithm_config",
        },
        "ccl.sfr_config": {"ccl.install": "configure_sfr_intercube_multisip"},
        **{path: {path: "TOPOLOGY kernel kernel_args"} for path in _ALGORITHMS},
        "ccl.algorithms.intercube_allreduce": {
            "ccl.algorithms.intercube_allreduce": "TOPOLOGY kernel kernel_args MESH_2D_NO_WRAP"
            " RING_1D SIP_TOPOLOGY_KINDS TORUS_2D"
        },
        "tp.parallel_state": {
            "tp": "destroy_model_parallel get_tensor_model_parallel_rank"
            " get_tensor_model_parallel_world_size initialize_model_parallel"
            " model_parallel_is_initialized"
        },
        "tp.layers": {
            "tp": "ColumnParallelLinear RowParallelLinear VocabParallelEmbedding"
            " copy_to_tensor_model_parallel_region gather_from_tensor_model_parallel_region"
            " reduce_from_tensor_model_parallel_region scatter_to_tensor_model_parallel_region"
        },
    }
)
"""Paths below ``kernbench``: names by modules of ours. Those of `REFUSED` come on top."""

BuildHost = Callable[[Machine], HostContext]
"""Makes the context of ours that an engine of the program runs on."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An entry of a program: its name, what it measures, its function."""

    name: str
    description: str
    run: Callable[..., Any]


@dataclass(slots=True)
class ProgramRegistry:
    """Benches and kernels of one program, by name, and how its engines are made."""

    build_host: BuildHost = HostContext
    benches: dict[str, Bench] = field(default_factory=dict)
    kernels: dict[str, Callable[..., Any]] = field(default_factory=dict)

    # -- kernbench.benches.registry --------------------------------------------------------------

    def bench(
        self, name: str, description: str = ""
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function as a bench."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if name in self.benches:
                found = f"two benches {name!r}"
                raise RegistryError("bench", found, "one of each name", "rename one of them")
            self.benches[name] = Bench(name, description, function)
            return function

        return register

    def resolve(self, name: str | int) -> Bench:
        """Find a bench by its name, or by its place in the alphabet, counted from 1."""
        listed = self.list_all()
        if isinstance(name, int) or (isinstance(name, str) and name.isdigit()):
            if 1 <= int(name) <= len(listed):
                return listed[int(name) - 1]
        elif name in self.benches:
            return self.benches[name]
        expected = f"one of {', '.join(self.benches)}" if self.benches else "a registered bench"
        fix = meant(name, self.benches, "decorate its function with @bench")
        raise ValueProgramError("resolve", f"no bench {name!r}", expected, fix)

    def list_all(self) -> list[Bench]:
        """Return all benches in the order of their names."""
        return [self.benches[name] for name in sorted(self.benches)]

    # -- kernbench.triton_emu.registry -----------------------------------------------------------

    def register_kernel(self, name: str, function: Callable[..., Any]) -> None:
        """Register a kernel for launch messages; the last registration of a name wins."""
        self.kernels[name] = function


_entered: list[ProgramRegistry] = []  # innermost last; workers of a program see it too


def current_registry() -> ProgramRegistry:
    """Return the registry of the program that runs; outside of all programs a new one."""
    return _entered[-1] if _entered else ProgramRegistry()


@contextmanager
def entered_registry(registry: ProgramRegistry) -> Iterator[None]:
    """Let a registry be the current one while the block runs."""
    _entered.append(registry)
    try:
        yield
    finally:
        _entered.pop()


def build_names(registry: ProgramRegistry) -> ForeignNames:
    """Return the module paths of KernBench for one program, with its own registry."""
    table: dict[str, dict[str, object]] = {path: dict(names) for path, names in REFUSED.items()}
    for path, modules in NAMES.items():
        names = table.setdefault(path, {})
        for module, found in modules.items():
            ours = import_module(f"{_OURS}.{module}")
            names |= {name: getattr(ours, name) for name in found.split()}
    benches = ("bench", "resolve", "list_all")
    table["benches.registry"] = {name: getattr(registry, name) for name in benches}
    table["triton_emu.registry"] = {
        "register_kernel": registry.register_kernel,
        "_kernels": registry.kernels,
    }
    return ForeignNames(PACKAGE, table)
