"""Flows beside each other on one source: every flow at every budget in every case."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import PlanSpec
from tilewright.errors import UsageError
from tilewright.evaluation import (
    SOURCES,
    Case,
    Source,
    SourceKind,
    SourceSpec,
    join_trials,
    order_flows,
    pareto_front,
    run_trial,
)
from tilewright.records import content_hash, installed_versions
from tilewright.records.attention_compare import (
    AttentionCompareRecord,
    CompareSizes,
    QualityRow,
    TrialRecord,
)
from tilewright.serving.decode import kept_queries_of
from tilewright.serving.model_flow import plan_pages, trace_for_model
from tilewright.studies.compare_flows_state import KeptTrials

__all__ = ("CompareSpec", "Tell", "compare_flows")

Tell = Callable[[int, int, str], None]
"""How many trials are complete, of how many, and what is done now."""


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

    complete: dict[str, TrialRecord] = field(default_factory=dict)
    kept: int = 0
    is_interrupted: bool = False


def compare_flows(spec: CompareSpec, *, tell: Tell) -> AttentionCompareRecord:
    """Run all trials, but for those that the state has; Ctrl-C leaves what is complete."""
    start = time.perf_counter()
    with threadpool_limits(limits=spec.threads, user_api="blas"):
        source = SOURCES[spec.source].build(spec.sizes)
        planned = _plan_trials(spec, source)
        run = _run_trials(spec, source, planned, tell)
    return _record(spec, source, planned, run, time.perf_counter() - start)


def _plan_trials(spec: CompareSpec, source: Source) -> list[Planned]:
    graphs = dict(trace_for_model(flow, source.geometry) for flow in spec.flows)
    if len(graphs) < len(spec.flows):
        found = f"a flow twice among {', '.join(spec.flows)}"
        raise UsageError("flows", found, "each once", "leave one out")
    reserved, layers = spec.sizes.reserved, min(spec.dense_layers, source.num_layers)
    plans = {budget: plan_pages(budget, reserved, dense_layers=layers) for budget in spec.budgets}
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
        "dense_layers": spec.dense_layers,
        "threads": spec.threads,
    }


def _run_trials(spec: CompareSpec, source: Source, planned: Sequence[Planned], tell: Tell) -> Run:
    kept = KeptTrials(spec.state)
    run = Run(complete=kept.found(trial.key for trial in planned))
    run.kept = len(run.complete)
    missing = [trial for trial in planned if trial.key not in run.complete]
    kept_queries = max(kept_queries_of(trial.graph) for trial in planned)
    try:
        for trial, case in _with_cases(source, missing, kept_queries, run, len(planned), tell):
            tell(len(run.complete), len(planned), f"{trial.flow}, {trial.budget} pages")
            record = run_trial(
                case, trial.graph, trial.plan,
                key=trial.key, flow=trial.flow, budget=trial.budget, index=trial.case,
            )  # fmt: skip
            run.complete[trial.key] = record
            kept.add(record)
    except KeyboardInterrupt:
        run.is_interrupted = True
    tell(len(run.complete), len(planned), "")
    return run


def _with_cases(
    source: Source,
    missing: Sequence[Planned],
    kept_queries: int,
    run: Run,
    total: int,
    tell: Tell,
) -> Iterator[tuple[Planned, Case]]:
    """One case is in memory at a time; its prompt serves all flows and budgets."""
    drawn: tuple[int, Case] | None = None
    for trial in missing:
        if drawn is None or drawn[0] != trial.case:
            tell(len(run.complete), total, f"dense attention of case {trial.case + 1}")
            drawn = None
            drawn = (trial.case, source.draw(trial.case, kept_queries=kept_queries))
        yield trial, drawn[1]


def _record(
    spec: CompareSpec, source: Source, planned: Sequence[Planned], run: Run, seconds: float
) -> AttentionCompareRecord:
    sizes = spec.sizes
    rows, joined = [], []
    by_row: dict[tuple[str, int], list[Planned]] = {}
    for trial in planned:
        by_row.setdefault((trial.flow, trial.budget), []).append(trial)
    pages = -(-sizes.context // sizes.page_size)
    for mine in by_row.values():
        if all(trial.key in run.complete for trial in mine):
            trials = [run.complete[trial.key] for trial in mine]
            joined += trials
            rows.append(
                join_trials(trials, source=spec.source.value, context=sizes.context, pages=pages)
            )
    return AttentionCompareRecord(
        status="interrupted" if run.is_interrupted else "complete",
        versions=installed_versions(engine="none"),
        source=source.figures,
        sizes=_sizes(spec, source),
        seed=sizes.seed,
        rows=_with_front(rows),
        differences=order_flows(joined),
        trials_kept=run.kept,
        state=None if spec.state is None else str(spec.state),
        compare_s=seconds,
    )


def _sizes(spec: CompareSpec, source: Source) -> CompareSizes:
    sizes = spec.sizes
    return CompareSizes(
        context=sizes.context,
        page_size=sizes.page_size,
        cases=sizes.cases,
        steps=sizes.steps,
        reserved_first=sizes.reserved.first,
        reserved_last=sizes.reserved.last,
        dense_layers=min(spec.dense_layers, source.num_layers),
        threads=spec.threads,
    )


def _with_front(rows: Sequence[QualityRow]) -> tuple[QualityRow, ...]:
    front = pareto_front([(row.bytes, row.mass) for row in rows])
    return tuple(
        row.model_copy(update={"is_pareto": on_it}) for row, on_it in zip(rows, front, strict=True)
    )
