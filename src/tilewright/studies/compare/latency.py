"""Trials and latencies that are complete, kept in a file so that a second run continues."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.attention.graph import Graph
from tilewright.records import installed_versions, locked_target, read_record, write_record
from tilewright.records.attention.compare import (
    CompareState,
    LatencyFigures,
    LatencyRecord,
    QualityRow,
    TrialRecord,
)
from tilewright.records.attention.decode import LatencySelection
from tilewright.studies.latency import REFUSALS, LatencyOf, LatencyQuery, StepsOnMachines

WHAT = "state"


class KeptWork:
    """The file is written after each result, whole or not at all; without a path nothing is kept.

    A result is found by the hash of all that it depends on: those of other comparisons may stand
    in the same file, and none of them is taken by mistake. Several processes may share the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.trials: dict[str, TrialRecord] = {}
        self.latencies: dict[str, LatencyRecord] = {}
        if path is not None:
            with locked_target(path, WHAT):
                self._take_from(path)

    def add(self, result: TrialRecord | LatencyRecord) -> None:
        if isinstance(result, TrialRecord):
            self.trials[result.key] = result
        else:
            self.latencies[result.key] = result
        if self._path is not None:
            with locked_target(self._path, WHAT):
                self._take_from(self._path)
                trials, latencies = tuple(self.trials.values()), tuple(self.latencies.values())
                write_record(self._path, CompareState(trials=trials, latencies=latencies))

    def _take_from(self, path: Path) -> None:
        """Take over what the file has: another process may have written it meanwhile."""
        if path.exists():
            state = read_record(path, CompareState)
            self.trials = {trial.key: trial for trial in state.trials} | self.trials
            self.latencies = {each.key: each for each in state.latencies} | self.latencies


INTERRUPTED = "the run was interrupted before it was simulated"


@dataclass(frozen=True, slots=True)
class Latency:
    """A simulated time, or why there is none."""

    latency_ps: int | None = None
    selection: LatencySelection | None = None
    missing: str | None = None


@dataclass(slots=True)
class Simulations:
    """Steps as they are simulated; ``tell`` hears how many are done, and what comes now."""

    latency_of: LatencyOf
    kept: KeptWork
    tell: Callable[[int, str], None]
    is_interrupted: bool = False
    num_kept: int = 0
    num_done: int = 0
    versions: dict[str, object] = field(
        default_factory=lambda: installed_versions(engine="none").model_dump()
    )

    def find(self, query: LatencyQuery, what: str) -> Latency:
        key = query.key(self.versions)
        if key in self.kept.latencies:
            self.num_kept += 1
        elif self.is_interrupted:
            return Latency(missing=INTERRUPTED)
        else:
            try:
                self.tell(self.num_done, f"{what} on {query.machine.figures.name}")
                latency_ps = self.latency_of(query)
            except KeyboardInterrupt:
                self.is_interrupted = True
                return Latency(missing=INTERRUPTED)
            except REFUSALS as error:
                self.num_done += 1
                return Latency(missing=str(error))
            record = LatencyRecord(key=key, latency_ps=latency_ps, selection=query.selection)
            self.kept.add(record)
        self.num_done += 1
        kept = self.kept.latencies[key]
        return Latency(kept.latency_ps, kept.selection)


@dataclass(frozen=True, slots=True)
class ComparedSteps:
    """The first decoded token of a comparison: the context and one."""

    common: StepsOnMachines
    graphs: dict[str, Graph]  # of flows, by label
    tokens: int

    @property
    def figures(self) -> LatencyFigures:
        machines = tuple(one.figures for one in self.common.spec.machines)
        return LatencyFigures(machines=machines, step=self.common.figures, tokens=self.tokens)

    def num_queries(self, num_rows: int) -> int:
        """Return the steps to simulate: on each machine the dense one, and one for each row."""
        return len(self.common.spec.machines) * (num_rows + 1)


def latency_rows(
    steps: ComparedSteps, rows: Sequence[tuple[QualityRow, TrialRecord]], simulations: Simulations
) -> list[QualityRow]:
    """Return each row once for each machine, with the trial whose pages are simulated."""
    found = []
    for machine in steps.common.spec.machines:
        dense = simulations.find(steps.common.dense(machine, steps.tokens), "dense attention")
        for row, trial in rows:
            graph, what = steps.graphs[trial.flow], f"{row.flow}, {row.budget} pages"
            query = steps.common.sparse(
                machine, graph, steps.tokens, trial.budget, trial.first_pages
            )
            latency = simulations.find(query, what)
            figures = {
                "machine": machine.figures.name,
                "latency_ps": latency.latency_ps,
                "latency_selection": latency.selection,
                "latency_missing": latency.missing,
                "dense_latency_ps": dense.latency_ps,
                "dense_latency_missing": dense.missing,
            }
            found.append(row.model_copy(update=figures))
    return found
