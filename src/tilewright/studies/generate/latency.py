"""Time of a text's attention on machines: one layer's step at the ends of the run, times layers."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.attention.graph import Graph
from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.records.generate import SimulatedAttention, SimulatedLength
from tilewright.serving.decode import PagesByRow
from tilewright.studies.step_latency import (
    REFUSALS,
    LatencyOf,
    LatencyQuery,
    LatencySpec,
    NamedMachine,
    spread_layers,
    step_figures,
)

NOTHING_DECODED = "no token was decoded: the first one comes from the prompt"


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """How long the sequence was with the step's token, and what each layer read."""

    tokens: int
    pages: PagesByRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnMachines:
    """A run to simulate. ``graph`` and ``stand_in`` are traced in the machines' type."""

    spec: LatencySpec
    graph: Graph | None  # None: dense, without a flow
    stand_in: Graph  # of dense attention, which asks no flow
    layers: int
    dense_layers: int  # of them, the first so many
    kv_heads: int
    budget: int
    reserved: Reserved
    state_advance: StateAdvance
    seed: int


def simulate_run(
    run: RunOnMachines, steps: Sequence[DecodedStep], latency_of: LatencyOf
) -> tuple[SimulatedAttention, ...]:
    """``steps`` are the first and the last of the run; one, or none, if it has no more."""
    return tuple(_simulate(run, machine, steps, latency_of) for machine in run.spec.machines)


def _simulate(
    run: RunOnMachines, machine: NamedMachine, steps: Sequence[DecodedStep], latency_of: LatencyOf
) -> SimulatedAttention:
    missing = None if steps else NOTHING_DECODED
    lengths = []
    for step in steps:
        dense_ps, dense_missing = _ask(_dense_query(run, machine, step), latency_of)
        query = _sparse_query(run, machine, step)
        sparse_ps, sparse_missing = (None, None) if query is None else _ask(query, latency_of)
        missing = missing or dense_missing or sparse_missing
        lengths.append(
            SimulatedLength(
                tokens=step.tokens,
                latency_ps=sparse_ps,
                dense_latency_ps=dense_ps,
                selection=None if query is None else query.selection,
            )
        )
    return SimulatedAttention(
        machine=machine.figures,
        step=step_figures(run.spec, run.stand_in.geometry, run.kv_heads),
        lengths=tuple(lengths),
        layers=run.layers,
        dense_layers=run.dense_layers,
        latency_ps=_mean([_all_layers(run, length) for length in lengths]),
        dense_latency_ps=_mean([_times(run.layers, one.dense_latency_ps) for one in lengths]),
        missing=missing,
    )


def _dense_query(run: RunOnMachines, machine: NamedMachine, step: DecodedStep) -> LatencyQuery:
    return _query(run, machine, step, run.stand_in, is_dense=True)


def _sparse_query(
    run: RunOnMachines, machine: NamedMachine, step: DecodedStep
) -> LatencyQuery | None:
    """None where every layer is dense."""
    layers = step.pages[run.dense_layers :]
    if run.graph is None or not layers:
        return None
    (pages,) = spread_layers(layers, 1)
    return _query(run, machine, step, run.graph, pages=pages)


def _query(
    run: RunOnMachines,
    machine: NamedMachine,
    step: DecodedStep,
    graph: Graph,
    *,
    is_dense: bool = False,
    pages: tuple[tuple[int, ...], ...] | None = None,
) -> LatencyQuery:
    return LatencyQuery(
        machine=machine,
        graph=graph,
        contexts=(step.tokens,),
        kv_heads=run.kv_heads,
        budget=run.budget,
        reserved=run.reserved,
        state_advance=run.state_advance,
        placement=run.spec.placement,
        is_dense=is_dense,
        pages=pages,
        seed=run.seed,
    )


def _ask(query: LatencyQuery, latency_of: LatencyOf) -> tuple[int | None, str | None]:
    """A time, or why there is none."""
    try:
        return latency_of(query), None
    except REFUSALS as error:
        return None, str(error)


def _all_layers(run: RunOnMachines, length: SimulatedLength) -> int | None:
    dense = _times(run.dense_layers, length.dense_latency_ps)
    sparse = _times(run.layers - run.dense_layers, length.latency_ps)
    return None if dense is None or sparse is None else dense + sparse


def _times(count: int, latency_ps: int | None) -> int | None:
    """Of no layers the time is none, and need not be known."""
    if not count:
        return 0
    return None if latency_ps is None else count * latency_ps


def _mean(latencies_ps: Sequence[int | None]) -> int | None:
    """Rounded down; not known if one of them is not."""
    known = [latency_ps for latency_ps in latencies_ps if latency_ps is not None]
    return sum(known) // len(known) if known and len(known) == len(latencies_ps) else None
