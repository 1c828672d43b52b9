"""Runs of programs: a file that imports ``kernbench``, or one bench on one topology."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import BenchError
from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.engine import GraphEngine, spec_of_machine
from tilewright.interop.kernbench.names import (
    BuildHost,
    ProgramRegistry,
    build_names,
    current_registry,
    entered_registry,
)
from tilewright.interop.kernbench.topology import Topology, resolve_topology
from tilewright.interop.kernbench.value import Completion, DeviceSelector
from tilewright.interop.program_file import ProgramFile
from tilewright.units import PS_PER_NS

ENTRY = "run"


class KernbenchProgram:
    """A file that imports ``kernbench``, loaded once with names and a registry of its own.

    ``build_host`` makes the context of ours for an engine that the program builds by itself.
    """

    def __init__(self, file: Path, content: bytes, build_host: BuildHost = HostContext) -> None:
        self.registry = ProgramRegistry(build_host)
        self._file = ProgramFile(file, content, build_names(self.registry))
        with entered_registry(self.registry):
            self.module = self._file.load()

    def entry(self, bench: str | None = None) -> Callable[..., Any]:
        """Return what to run: the bench of a name, else ``run``, else the only bench."""
        if bench is not None:
            return self.registry.resolve(bench).run
        run: Callable[..., Any] | None = getattr(self.module, ENTRY, None)
        if callable(run):
            return run
        benches = self.registry.list_all()
        if len(benches) == 1:
            return benches[0].run
        where, expected = str(self._file.file), "a function run(torch), or one with @bench"
        if not benches:
            raise BenchError(where, "neither of them", expected, "define run(torch)")
        names = ", ".join(each.name for each in benches)
        fix = f"name one of them: {where}::{benches[0].name}"
        raise BenchError(where, f"the benches {names}", "one entry", fix)

    def run(self, host: HostContext, values: dict[str, Any], bench: str | None = None) -> None:
        """Run the entry on a KernBench context over a context of ours; what it returns is lost."""
        engine = GraphEngine.of_host(host)
        engine.kernels = self.registry.kernels
        spec = spec_of_machine(host.machine)
        torch = RuntimeContext(engine, str(host.device), host.driver.correlation_id, spec)
        entry = self.entry(bench)
        with entered_registry(self.registry), self._file.running():
            entry(torch, **values)
            torch.wait_all()


NO_REQUESTS = Completion(False, "NO_REQUESTS", "the bench asked nothing of the machine")


@dataclass(frozen=True, slots=True)
class BenchResult:
    """How a bench went: its first failure, if any, and the traces of its writes and launches."""

    completion: Completion
    traces: tuple[dict[str, Any], ...] = field(repr=False)
    total_ns: float  # simulated time at the end

    @property
    def ok(self) -> bool:
        return self.completion.ok


def run_bench(
    bench: str | int | Callable[[RuntimeContext], Any],
    topology: str | Path | Mapping[str, Any] | Topology,
    device: DeviceSelector | str = "all",
    *,
    correlation_id: str = "bench",
) -> BenchResult:
    """Run a bench on an engine of its own and return how it went.

    ``bench`` is a function ``run(torch)``, or the name or number of one with ``@bench``.
    ``topology`` is a file, a mapping or what ``resolve_topology`` returned. A bench that asks
    nothing of the machine fails with NO_REQUESTS. An error in the bench or in a kernel is raised.
    """
    run = bench if callable(bench) else current_registry().resolve(bench).run
    graph = topology if isinstance(topology, Topology) else resolve_topology(topology)
    engine = GraphEngine(graph)
    with RuntimeContext(engine, device, correlation_id, graph.spec) as torch:
        run(torch)
        torch.wait_all()
    completions = [engine.get_completion(handle)[0] for handle in torch.handles()]
    first = next((each for each in completions if not each.ok), Completion(ok=True))
    if not engine.host.handles():
        first = NO_REQUESTS
    return BenchResult(first, tuple(torch.traces), engine.host.now_ps / PS_PER_NS)
