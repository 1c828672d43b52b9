"""How fast the event engines are, as ratios to SimPy on the same loads in one run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.bench.peers import collector_at_rest, load_peer
from tilewright.engine import EngineKind, digest_of, native_built
from tilewright.errors import InternalError
from tilewright.records import (
    EngineBenchRecord,
    EngineRatios,
    EngineWorkloadRow,
    GrowthRow,
    installed_versions,
)
from tilewright.validation import engine_run
from tilewright.validation.engine_run import PeerRun
from tilewright.validation.workload import (
    ClosedLoop,
    MeshSpec,
    NetworkLoad,
    PerNode,
    closed_loop,
    mesh_load,
)

SIDE = 16
LOAD = 0.5  # share of the bisection
BUFFER_FLITS = 128
GROWTH_SIDES = (8, 32)
GROWTH_LOAD = PerNode(flits_per_us=100.0)  # 0.4 of the larger mesh's bisection
GROWTH_MESSAGES_PER_NODE = 40
NUM_TIMEOUTS = 200_000
OPEN, CLOSED, FINITE, SLICE = "open loop", "closed loop", "finite buffers", "open, flits"
MESSAGE, FLITS = "simpy", "simpy, flits"

Progress = Callable[[str], None]
Runner = Callable[[], PeerRun]


@dataclass(frozen=True, slots=True)
class EngineWorkload:
    """A load, and what it stands for."""

    name: str
    load: NetworkLoad | ClosedLoop
    meaning: str


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest of several equal runs, with the digest of their results."""

    run: PeerRun
    digest: str


def engine_workloads(seed: int) -> tuple[EngineWorkload, ...]:
    """The three loads that decide what an engine can be used for."""
    mesh = MeshSpec(SIDE)
    bounded = MeshSpec(SIDE, buffer_flits=BUFFER_FLITS, round_robin=True)
    return (
        EngineWorkload(
            OPEN,
            mesh_load(mesh, 10_000, LOAD, seed),
            "messages cross a 16x16 mesh with slow links in the middle",
        ),
        EngineWorkload(
            CLOSED,
            closed_loop(mesh, 20, seed),
            "256 greenlet programs read from random nodes and compute",
        ),
        EngineWorkload(
            FINITE,
            mesh_load(bounded, 10_000, LOAD, seed),
            f"the open loop with {BUFFER_FLITS}-flit buffers, credits and round robin",
        ),
    )


def engine_kinds() -> tuple[EngineKind, ...]:
    """The engines of this installation."""
    return (EngineKind.REFERENCE, EngineKind.NATIVE) if native_built() else (EngineKind.REFERENCE,)


def run_engine_bench(*, progress: Progress, seed: int = 1, rounds: int = 5) -> EngineBenchRecord:
    """Engines and peers take turns on every load; the best time of each counts."""
    peer = load_peer("simpy_message")
    rows: list[EngineWorkloadRow] = []
    for workload in engine_workloads(seed):
        progress(f"{workload.name}: {workload.meaning}")
        is_open = isinstance(workload.load, NetworkLoad)
        run_peer = peer.run_open if is_open else peer.run_closed
        runners: dict[str, Runner] = {
            MESSAGE: partial(run_peer, workload.load),
            **_engine_runners(workload.load),
        }
        rows += _rows(workload.name, _measure(runners, rounds))
    progress("a slice of the open loop at flit level")
    part = mesh_load(MeshSpec(SIDE), 300, LOAD, seed)
    in_flits: dict[str, Runner] = {FLITS: partial(peer.run_flits, part), **_engine_runners(part)}
    rows += _rows(SLICE, _measure(in_flits, 2))
    progress("growth from 64 to 1024 nodes")
    growth = _measure_growth(seed, rounds)
    return EngineBenchRecord(
        versions=installed_versions(engine=" and ".join(kind.value for kind in engine_kinds())),
        seed=seed,
        identical=is_identical(rows),
        ratios=_ratios(rows),
        growth_64_to_1024=growth_figure(growth),
        growth=growth,
        workloads=tuple(rows),
        simpy_timeouts_per_s=peer.bare_timeout_rate(NUM_TIMEOUTS),
        invariant_cost=_invariant_cost(seed, rounds),
    )


def _measure(runners: Mapping[str, Runner], rounds: int) -> dict[str, Best]:
    """Let the runners take turns, so that a slow moment of the machine hits them alike."""
    best: dict[str, Best] = {}
    for _ in range(rounds):
        for name, runner in runners.items():
            with collector_at_rest():
                run = runner()
            digest = digest_of(run.delivered_ps.items())
            if best.setdefault(name, Best(run, digest)).digest != digest:
                raise InternalError(name, "two results of one load", "one", "report the run")
            if run.seconds < best[name].run.seconds:
                best[name] = Best(run, digest)
    return best


def _engine_runners(load: NetworkLoad | ClosedLoop) -> dict[str, Runner]:
    return {kind.value: partial(_run, load, kind) for kind in engine_kinds()}


def _run(load: NetworkLoad | ClosedLoop, kind: EngineKind) -> PeerRun:
    if isinstance(load, NetworkLoad):
        return engine_run.run_open(load, kind)
    return engine_run.run_closed(load, kind)


def _rows(workload: str, best: Mapping[str, Best]) -> list[EngineWorkloadRow]:
    return [
        EngineWorkloadRow(
            workload=workload,
            implementation=name,
            seconds=found.run.seconds,
            hops=found.run.num_hops,
            hops_per_s=found.run.num_hops / found.run.seconds,
            events_per_hop=found.run.events_per_hop,
            simulated_ps=max(found.run.delivered_ps.values()),
            digest=found.digest,
        )
        for name, found in best.items()
    ]


def is_identical(rows: Sequence[EngineWorkloadRow]) -> bool:
    results = {(row.workload, row.digest) for row in rows}
    return len(results) == len({row.workload for row in rows})


def _ratios(rows: Sequence[EngineWorkloadRow]) -> EngineRatios:
    seconds = {(row.workload, row.implementation): row.seconds for row in rows}

    def ratio(workload: str, kind: EngineKind) -> float | None:
        own = seconds.get((workload, kind.value))
        return None if own is None else seconds[workload, MESSAGE] / own

    return EngineRatios(
        native_open_loop=ratio(OPEN, EngineKind.NATIVE),
        native_closed_loop=ratio(CLOSED, EngineKind.NATIVE),
        native_finite_buffers=ratio(FINITE, EngineKind.NATIVE),
        reference_open_loop=ratio(OPEN, EngineKind.REFERENCE),
    )


def _measure_growth(seed: int, rounds: int) -> tuple[GrowthRow, ...]:
    """The fastest engine on meshes of two sizes at the same load per node."""
    loads = {
        side: mesh_load(MeshSpec(side), GROWTH_MESSAGES_PER_NODE * side**2, GROWTH_LOAD, seed)
        for side in GROWTH_SIDES
    }
    kind = engine_kinds()[-1]
    runners = {str(side): partial(_run, load, kind) for side, load in loads.items()}
    best = _measure(runners, 2 * rounds)
    runs = [(side, best[str(side)].run) for side in GROWTH_SIDES]
    return tuple(
        GrowthRow(nodes=side**2, hops=run.num_hops, seconds=run.seconds) for side, run in runs
    )


def growth_figure(rows: Sequence[GrowthRow]) -> float:
    """How much more a hop costs at the larger size."""
    small, large = rows
    return (large.seconds / small.seconds) / (large.hops / small.hops)


def _invariant_cost(seed: int, rounds: int) -> float:
    """The share of the worst engine's open-loop run that its conservation rules take."""
    load = engine_workloads(seed)[0].load
    shares: list[float] = []
    for kind in engine_kinds():
        runs = [_run(load, kind) for _ in range(rounds)]
        shares.append(min(r.check_seconds for r in runs) / min(r.seconds for r in runs))
    return max(shares)
