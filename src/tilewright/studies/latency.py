"""How long one layer's attention of a decode step takes on a machine: what is asked, and how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from tilewright.attention.backends.machine import Recorded, RowPlacement, SelectionModel, Uniform
from tilewright.attention.graph import DType, Geometry, Graph, dtypes_of, graph_hash
from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.canonical import content_hash
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.errors import (
    AttentionError,
    CodegenError,
    KernelError,
    OutOfMemoryError,
    PlacementError,
    UsageError,
)
from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.spec import HbmSpec
from tilewright.records import Versions, installed_versions
from tilewright.records.attention.decode import LatencySelection, MachineOfSteps, StepFigures
from tilewright.serving.decode import PagesByRow
from tilewright.serving.model_flow import plan_pages, stand_in_for, trace_for_model
from tilewright.studies.decode.step import DecodeStep, simulate_step

REFUSALS = (CodegenError, AttentionError, KernelError, OutOfMemoryError, PlacementError)
"""How a machine says that it cannot run a step: no kernels for it, or no room."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class NamedMachine:
    """A machine, and where it comes from."""

    machine: Machine
    source: str  # a preset, or a file
    overrides: tuple[str, ...] = ()

    @cached_property
    def figures(self) -> MachineOfSteps:
        spec = self.machine.spec
        return MachineOfSteps.of(
            self,
            name=spec.name,
            machine_hash=machine_hash(spec),
            refresh_ps=_refresh_ps(spec.cube.hbm),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySpec:
    """On which machines, and how rows lie there."""

    machines: tuple[NamedMachine, ...]
    placement: RowPlacement = RowPlacement.HEAD
    batch: int = 1  # requests
    dtype: DType = DType.FLOAT16  # of queries, keys, values and summaries


def versions_of(spec: LatencySpec | None) -> Versions:
    """Return the versions for a record; without machines no engine runs."""
    if spec is None:
        return installed_versions(engine="none")
    return installed_versions(engine=resolve_engine(AUTO, native_built=native_built()).value)


@dataclass(frozen=True, slots=True)
class LatencyQuery:
    """One step on one machine, whose plan lets a row read ``budget`` pages."""

    machine: NamedMachine
    step: DecodeStep
    budget: int

    @property
    def selection(self) -> LatencySelection:
        if self.step.is_dense:
            return "every page"
        return "uniform" if self.pages is None else "recorded"

    @property
    def pages(self) -> tuple[tuple[int, ...], ...] | None:
        """Those that each row reads; None: all, or a model draws them."""
        chosen = self.step.selection
        return chosen.pages if isinstance(chosen, Recorded) else None

    def key(self, versions: object) -> str:
        """Of all that the latency depends on; both engines give the same."""
        step, plan = self.step, self.step.plan
        return content_hash(
            {
                "versions": versions,
                "machine": self.machine.figures.machine_hash,
                "graph": graph_hash(step.graph),
                "contexts": step.contexts,
                "kv_heads": step.kv_heads,
                "budget": None if step.is_dense else self.budget,
                "reserved": [plan.reserved.first, plan.reserved.last],
                "state_advance": plan.state_advance.value,
                "placement": step.placement.value,
                "selection": self.selection,
                "pages": self.pages,
                "seed": step.seed,
            }
        )


def _refresh_ps(hbm: HbmSpec) -> int:
    if hbm.model == "simple":
        return 0
    refresh = hbm.refresh
    times_ps = {"all_bank": refresh.all_bank_ps, "per_bank": refresh.per_bank_ps, "none": 0}
    return times_ps[refresh.kind]


LatencyOf: TypeAlias = Callable[[LatencyQuery], int]
"""Picoseconds of a step; one of `REFUSALS` where the machine cannot run it."""


def check_names(machines: Sequence[NamedMachine]) -> None:
    """Rows tell machines apart by their names."""
    names = [one.figures.name for one in machines]
    for name in names:
        if names.count(name) > 1:
            fix = "give each file a name of its own, or leave one out"
            raise UsageError("--machine", f"two machines called {name!r}", "one", fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOnMachines:
    """What all simulated steps of one model have in common."""

    spec: LatencySpec
    geometry: Geometry  # the model's sizes, kept in the machines' type
    kv_heads: int
    stand_in: Graph  # of dense attention, which asks no flow
    dense_layers: int  # the first so many read every page
    reserved: Reserved
    state_advance: StateAdvance
    seed: int

    @classmethod
    def of(cls, spec: LatencySpec, geometry: Geometry, **rest: Any) -> "StepsOnMachines":
        """Take the sizes of a model as it has them."""
        geometry = replace(geometry, **dtypes_of(spec.dtype))
        stand_in = trace_for_model(stand_in_for(geometry.kind), geometry)[1]
        return cls(spec=spec, geometry=geometry, stand_in=stand_in, **rest)

    @property
    def figures(self) -> StepFigures:
        placement, dtype = self.spec.placement.value, self.spec.dtype.value
        return StepFigures.of(self, self.spec, self.geometry, placement=placement, dtype=dtype)

    def dense(self, machine: NamedMachine, tokens: int) -> LatencyQuery:
        """Return the step that reads every page of sequences of so many tokens."""
        return self._query(machine, self.stand_in, tokens, self.reserved.total, None)

    def sparse(
        self, machine: NamedMachine, graph: Graph, tokens: int, budget: int, pages: PagesByRow
    ) -> LatencyQuery:
        """Return the step whose rows read what sparse layers read; none: pages are drawn.

        ``pages`` are those of all layers. A request has the pages of one of them.
        """
        layers = pages[self.dense_layers :]
        chosen = spread_layers(layers, self.spec.batch) if layers else ()
        rows = tuple(row for layer in chosen for row in layer)
        selection = Recorded(rows) if layers else Uniform(self.seed)
        return self._query(machine, graph, tokens, budget, selection)

    def _query(
        self,
        machine: NamedMachine,
        graph: Graph,
        tokens: int,
        budget: int,
        selection: SelectionModel | None,
    ) -> LatencyQuery:
        step = DecodeStep(
            machine=machine.machine,
            graph=graph,
            contexts=(tokens,) * self.spec.batch,
            kv_heads=self.kv_heads,
            plan=plan_pages(budget, self.reserved, state_advance=self.state_advance),
            placement=self.spec.placement,
            is_dense=selection is None,
            selection=selection,
            seed=self.seed,
        )
        return LatencyQuery(machine, step, budget)


def spread_layers(layers: Sequence[Item], batch: int) -> tuple[Item, ...]:
    """A layer for each request, at equal distances; a single request has the one in the middle.

    >>> spread_layers("abcde", 1), spread_layers("abcde", 2), spread_layers("ab", 4)
    (('c',), ('b', 'd'), ('a', 'a', 'b', 'b'))
    """
    return tuple(layers[(2 * place + 1) * len(layers) // (2 * batch)] for place in range(batch))


def simulate_latency(query: LatencyQuery) -> int:
    """Return the time from the host's first submission to its knowing of the last completion."""
    return simulate_step(query.step, tells_stages=False).latency_ps
