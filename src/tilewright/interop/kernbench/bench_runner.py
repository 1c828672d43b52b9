"""One bench on one topology: ``kernbench.runtime_api.bench_runner``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.interop.kernbench.context import RuntimeContext
from tilewright.interop.kernbench.device import DeviceSelector
from tilewright.interop.kernbench.engine import GraphEngine
from tilewright.interop.kernbench.registry import current_registry
from tilewright.interop.kernbench.request import Completion
from tilewright.interop.kernbench.topology import Topology, resolve_topology
from tilewright.units import PS_PER_NS

__all__ = ("BenchResult", "run_bench")

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
