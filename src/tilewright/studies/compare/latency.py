"""Latencies of compared flows: the first decoded token of a row, simulated on each machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.attention.graph import Graph
from tilewright.evaluation import Source, SourceSpec
from tilewright.records import installed_versions
from tilewright.records.attention.compare import (
    LatencyFigures,
    LatencyRecord,
    QualityRow,
    TrialRecord,
)
from tilewright.records.attention.decode import LatencySelection
from tilewright.serving.model_flow import stand_in_for, trace_for_model
from tilewright.studies.compare.state import KeptWork
from tilewright.studies.latency import (
    REFUSALS,
    LatencyOf,
    LatencyQuery,
    LatencySpec,
    NamedMachine,
    geometry_on_machine,
    spread_layers,
    step_figures,
)

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
        kept = self.kept.latency(key)
        if kept is not None:
            self.num_kept += 1
            self.num_done += 1
            return Latency(kept.latency_ps, kept.selection)
        if self.is_interrupted:
            return Latency(missing=INTERRUPTED)
        try:
            self.tell(self.num_done, f"{what} on {query.machine.figures.name}")
            latency_ps = self.latency_of(query)
        except KeyboardInterrupt:
            self.is_interrupted = True
            return Latency(missing=INTERRUPTED)
        except REFUSALS as error:
            self.num_done += 1
            return Latency(missing=str(error))
        self.num_done += 1
        record = LatencyRecord(key=key, latency_ps=latency_ps, selection=query.selection)
        self.kept.add(record)
        return Latency(latency_ps, query.selection)


@dataclass(frozen=True, slots=True)
class StepOnMachines:
    """The step of a comparison: the model's sizes in the machine's type, at the context and one."""

    spec: LatencySpec
    sizes: SourceSpec
    dense_layers: int
    kv_heads: int
    graphs: dict[str, Graph]  # by label
    stand_in: Graph  # of dense attention, which asks no flow
    figures: LatencyFigures

    @classmethod
    def build(
        cls,
        spec: LatencySpec,
        source: Source,
        sizes: SourceSpec,
        *,
        flows: Sequence[str],
        dense_layers: int,
    ) -> "StepOnMachines":
        geometry = geometry_on_machine(source.geometry, spec.dtype)
        return cls(
            spec=spec,
            sizes=sizes,
            dense_layers=dense_layers,
            kv_heads=source.num_kv_heads,
            graphs=dict(trace_for_model(flow, geometry) for flow in flows),
            stand_in=trace_for_model(stand_in_for(geometry.kind), geometry)[1],
            figures=LatencyFigures(
                machines=tuple(one.figures for one in spec.machines),
                step=step_figures(spec, geometry, source.num_kv_heads),
                tokens=sizes.context + 1,
            ),
        )

    def num_queries(self, num_rows: int) -> int:
        """Steps to simulate: on each machine the dense one, and one for each row."""
        return len(self.spec.machines) * (num_rows + 1)

    def dense_query(self, machine: NamedMachine) -> LatencyQuery:
        return self._query(machine, self.stand_in, self.sizes.reserved.total, is_dense=True)

    def query(self, machine: NamedMachine, trial: TrialRecord) -> LatencyQuery:
        """Rows read what sparse layers of the trial read; where all are dense, drawn pages."""
        layers = trial.first_pages[self.dense_layers :]
        pages = None
        if layers:
            chosen = spread_layers(layers, self.spec.batch)
            pages = tuple(row for layer in chosen for row in layer)
        return self._query(machine, self.graphs[trial.flow], trial.budget, pages=pages)

    def _query(
        self,
        machine: NamedMachine,
        graph: Graph,
        budget: int,
        *,
        is_dense: bool = False,
        pages: tuple[tuple[int, ...], ...] | None = None,
    ) -> LatencyQuery:
        return LatencyQuery(
            machine=machine,
            graph=graph,
            contexts=(self.figures.tokens,) * self.spec.batch,
            kv_heads=self.kv_heads,
            budget=budget,
            reserved=self.sizes.reserved,
            state_advance=self.sizes.state_advance,
            placement=self.spec.placement,
            is_dense=is_dense,
            pages=pages,
            seed=self.sizes.seed,
        )


def latency_rows(
    step: StepOnMachines, rows: Sequence[tuple[QualityRow, TrialRecord]], simulations: Simulations
) -> list[QualityRow]:
    """Each row once for each machine; ``rows`` come with the trial whose pages are simulated."""
    found = []
    for machine in step.spec.machines:
        dense = simulations.find(step.dense_query(machine), "dense attention")
        for row, trial in rows:
            what = f"{row.flow}, {row.budget} pages"
            latency = simulations.find(step.query(machine, trial), what)
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
