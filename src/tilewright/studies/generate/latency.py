"""Time of a text's attention on machines: one layer's step at the ends of the run, times layers."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.attention.graph import Graph
from tilewright.records.generate import SimulatedAttention, SimulatedLength
from tilewright.serving.decode import PagesByRow
from tilewright.studies.latency import (
    REFUSALS,
    LatencyOf,
    LatencyQuery,
    NamedMachine,
    StepsOnMachines,
)

NOTHING_DECODED = "no token was decoded: the first one comes from the prompt"


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """How long the sequence was with the step's token, and what each layer read."""

    tokens: int
    pages: PagesByRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnMachines:
    """A run to simulate."""

    common: StepsOnMachines
    graph: Graph | None  # None: dense, without a flow
    layers: int
    budget: int


def simulate_run(
    run: RunOnMachines, steps: Sequence[DecodedStep], latency_of: LatencyOf
) -> tuple[SimulatedAttention, ...]:
    """``steps`` are the first and the last of the run; one, or none, if it has no more."""
    return tuple(_simulate(run, each, steps, latency_of) for each in run.common.spec.machines)


def _simulate(
    run: RunOnMachines, machine: NamedMachine, steps: Sequence[DecodedStep], latency_of: LatencyOf
) -> SimulatedAttention:
    common, missing = run.common, None if steps else NOTHING_DECODED
    lengths = []
    for step in steps:
        dense_ps, dense_missing = _ask(common.dense(machine, step.tokens), latency_of)
        query = sparse_ps = sparse_missing = None
        if run.graph is not None and step.pages[common.dense_layers :]:
            query = common.sparse(machine, run.graph, step.tokens, run.budget, step.pages)
            sparse_ps, sparse_missing = _ask(query, latency_of)
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
        step=common.figures,
        lengths=tuple(lengths),
        layers=run.layers,
        dense_layers=common.dense_layers,
        latency_ps=_mean([_all_layers(run, length) for length in lengths]),
        dense_latency_ps=_mean([_times(run.layers, one.dense_latency_ps) for one in lengths]),
        missing=missing,
    )


def _ask(query: LatencyQuery, latency_of: LatencyOf) -> tuple[int | None, str | None]:
    """Return a time, or why there is none."""
    try:
        return latency_of(query), None
    except REFUSALS as error:
        return None, str(error)


def _all_layers(run: RunOnMachines, length: SimulatedLength) -> int | None:
    dense = _times(run.common.dense_layers, length.dense_latency_ps)
    sparse = _times(run.layers - run.common.dense_layers, length.latency_ps)
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
