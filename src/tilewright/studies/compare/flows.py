"""Flows beside each other on one source: every flow at every budget in every case."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import PlanSpec
from tilewright.canonical import content_hash
from tilewright.errors import UsageError
from tilewright.evaluation import (
    SOURCES,
    Source,
    SourceKind,
    SourceSpec,
    join_trials,
    order_flows,
    pareto_front,
    run_trial,
)
from tilewright.records import installed_versions
from tilewright.records.attention.compare import (
    AttentionCompareRecord,
    CompareSizes,
    QualityRow,
    TrialRecord,
)
from tilewright.serving.decode import kept_queries_of
from tilewright.serving.model_flow import (
    check_dense_layers,
    kind_of_flows,
    plan_pages,
    trace_for_model,
)
from tilewright.studies.compare.latency import ComparedSteps, KeptWork, Simulations, latency_rows
from tilewright.studies.latency import (
    LatencyOf,
    LatencySpec,
    StepsOnMachines,
    simulate_latency,
    versions_of,
)

Tell = Callable[[int, int, str], None]
"""How many trials and simulated steps are complete, of how many, and what is done now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSpec:
    """What to compare. ``state`` is the file in which complete trials are kept."""

    flows: tuple[str, ...]  # ready flows, or flow files with one flow
    budgets: tuple[int, ...]  # pages of a row, reserved ones included
    source: SourceKind
    sizes: SourceSpec
    dense_layers: int = 0
    threads: int = 1  # of matrix products; another number may round otherwise
    state: Path | None = None
    latency: LatencySpec | None = None  # None: nothing is simulated


@dataclass(frozen=True, slots=True)
class Planned:
    """A trial before it is run."""

    case: int
    flow: str
    graph: Graph
    budget: int
    plan: PlanSpec
    key: str


@dataclass(slots=True)
class Run:
    """Trials as they become complete."""

    work: KeptWork
    num_trials: int
    total: int  # trials, and steps to simulate
    complete: dict[str, TrialRecord] = field(default_factory=dict)
    kept: int = 0
    is_interrupted: bool = False


Joined = tuple[QualityRow, Sequence[TrialRecord]]


def compare_flows(
    spec: CompareSpec, *, tell: Tell, latency_of: LatencyOf = simulate_latency
) -> AttentionCompareRecord:
    """Run all trials, but for those that the state has; Ctrl-C leaves what is complete.

    With machines, the first decoded token of every row is simulated behind the trials.
    """
    start = time.perf_counter()
    spec = replace(spec, sizes=replace(spec.sizes, kind=kind_of_flows(spec.flows)))
    with threadpool_limits(limits=spec.threads, user_api="blas"):
        source = SOURCES[spec.source].build(spec.sizes)
        planned = _plan_trials(spec, source)
        step = _plan_steps(spec, source)
        steps = 0 if step is None else step.num_queries(len(planned) // spec.sizes.cases)
        run = Run(KeptWork(spec.state), len(planned), len(planned) + steps)
        _run_trials(source, planned, run, tell)
        joined = _join_rows(spec, planned, run)
    simulations = Simulations(
        latency_of,
        run.work,
        lambda done, what: tell(run.num_trials + done, run.total, what),
        run.is_interrupted,
    )
    rows = [row for row, _ in joined]
    if step is not None:
        rows = latency_rows(step, [(row, trials[0]) for row, trials in joined], simulations)
    tell(len(run.complete) + simulations.num_done, run.total, "")
    return AttentionCompareRecord(
        status="interrupted" if simulations.is_interrupted else "complete",
        versions=versions_of(spec.latency),
        source=source.figures,
        sizes=_sizes(spec),
        seed=spec.sizes.seed,
        latency=None if step is None else step.figures,
        rows=_with_fronts(rows),
        differences=order_flows([trial for _, trials in joined for trial in trials]),
        trials_kept=run.kept,
        latencies_kept=simulations.num_kept,
        state=None if spec.state is None else str(spec.state),
        compare_s=time.perf_counter() - start,
    )


def _plan_trials(spec: CompareSpec, source: Source) -> list[Planned]:
    graphs = dict(trace_for_model(flow, source.geometry) for flow in spec.flows)
    if len(graphs) < len(spec.flows):
        found = f"a flow twice among {', '.join(spec.flows)}"
        raise UsageError("flows", found, "each once", "leave one out")
    check_dense_layers(spec.dense_layers, source.num_layers)
    reserved, layers = spec.sizes.reserved, spec.dense_layers
    advance = spec.sizes.state_advance
    plans = {
        budget: plan_pages(budget, reserved, dense_layers=layers, state_advance=advance)
        for budget in spec.budgets
    }
    common = _identity(spec, source)
    planned = []
    for case, (flow, graph), budget in product(
        range(spec.sizes.cases), graphs.items(), spec.budgets
    ):
        mine = {"case": case, "flow": flow, "graph": graph_hash(graph), "budget": budget}
        key = content_hash({**common, **mine})
        planned.append(Planned(case, flow, graph, budget, plans[budget], key))
    return planned


def _identity(spec: CompareSpec, source: Source) -> dict[str, object]:
    """All that the samples of a trial depend on, beside its own case, flow and budget."""
    sizes = spec.sizes
    return {
        "versions": installed_versions(engine="none").model_dump(),
        "source": source.figures.model_dump(),
        "context": sizes.context,
        "steps": sizes.steps,
        "cases": sizes.cases,  # depths of needles depend on it
        "seed": sizes.seed,
        "page_size": sizes.page_size,
        "reserved": [sizes.reserved.first, sizes.reserved.last],
        "state_advance": sizes.state_advance.value,
        "dense_layers": spec.dense_layers,
        "threads": spec.threads,
    }


def _plan_steps(spec: CompareSpec, source: Source) -> ComparedSteps | None:
    """Plan before the trials, so that a flow that cannot be traced is told at once."""
    if spec.latency is None:
        return None
    common = StepsOnMachines.of(
        spec.latency,
        source.geometry,
        kv_heads=source.num_kv_heads,
        dense_layers=spec.dense_layers,
        reserved=spec.sizes.reserved,
        state_advance=spec.sizes.state_advance,
        seed=spec.sizes.seed,
    )
    graphs = dict(trace_for_model(flow, common.geometry) for flow in spec.flows)
    return ComparedSteps(common, graphs, spec.sizes.context + 1)


def _run_trials(source: Source, planned: Sequence[Planned], run: Run, tell: Tell) -> None:
    kept = run.work.trials
    run.complete = {trial.key: kept[trial.key] for trial in planned if trial.key in kept}
    run.kept = len(run.complete)
    missing = [trial for trial in planned if trial.key not in run.complete]
    kept_queries = max(kept_queries_of(trial.graph) for trial in planned)
    try:
        for index, trials in groupby(missing, key=lambda trial: trial.case):
            tell(len(run.complete), run.total, f"dense attention of case {index + 1}")
            case = source.draw(index, kept_queries=kept_queries)
            for trial in trials:
                tell(len(run.complete), run.total, f"{trial.flow}, {trial.budget} pages")
                record = run_trial(
                    case, trial.graph, trial.plan,
                    key=trial.key, flow=trial.flow, budget=trial.budget, index=index,
                )  # fmt: skip
                run.complete[trial.key] = record
                run.work.add(record)
            del case  # one is in memory at a time; its prompt serves all flows and budgets
    except KeyboardInterrupt:
        run.is_interrupted = True


def _join_rows(spec: CompareSpec, planned: Sequence[Planned], run: Run) -> list[Joined]:
    """Rows whose trials are complete in all cases, with these trials."""
    sizes = spec.sizes
    by_row: dict[tuple[str, int], list[Planned]] = {}
    for trial in planned:
        by_row.setdefault((trial.flow, trial.budget), []).append(trial)
    pages = -(-sizes.context // sizes.page_size)
    joined: list[Joined] = []
    for mine in by_row.values():
        if all(trial.key in run.complete for trial in mine):
            trials = [run.complete[trial.key] for trial in mine]
            row = join_trials(trials, source=spec.source.value, context=sizes.context, pages=pages)
            joined.append((row, trials))
    return joined


def _sizes(spec: CompareSpec) -> CompareSizes:
    sizes = spec.sizes
    return CompareSizes.of(
        sizes,
        spec,
        reserved_first=sizes.reserved.first,
        reserved_last=sizes.reserved.last,
        state_advance=sizes.state_advance.value,
    )


def _with_fronts(rows: Sequence[QualityRow]) -> tuple[QualityRow, ...]:
    """Of each machine the rows that nobody beats, dense attention with all the mass included."""
    found: list[QualityRow] = []
    for _, group in groupby(rows, key=lambda row: row.machine):
        mine = list(group)
        costs = {
            place: cost for place, row in enumerate(mine) if (cost := _costs(row)[0]) is not None
        }
        points = [(float(cost), mine[place].mass) for place, cost in costs.items()]
        dense = [(float(cost), 1.0) for cost in _costs(mine[0])[1:] if cost is not None]
        front = pareto_front([*points, *dense])
        on_it = {place for place, is_on in zip(costs, front, strict=False) if is_on}
        found += [
            row.model_copy(update={"is_pareto": place in on_it}) for place, row in enumerate(mine)
        ]
    return tuple(found)


def _costs(row: QualityRow) -> tuple[int | None, int | None]:
    """Return what a row costs, and what dense attention does."""
    if row.machine is None:
        return row.bytes, row.dense_bytes
    return row.latency_ps, row.dense_latency_ps
