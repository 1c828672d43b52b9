"""How long one layer's attention of a decode step takes on a machine: what is asked, and how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from tilewright.attention.backends.machine import Recorded, RowPlacement, SelectionModel, Uniform
from tilewright.attention.graph import DType, Geometry, Graph, dtypes_of, graph_hash
from tilewright.attention.planner import Reserved, StateAdvance
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
from tilewright.records import content_hash
from tilewright.records.attention.decode import LatencySelection, MachineFigures, StepFigures
from tilewright.serving.model_flow import plan_pages
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
    def figures(self) -> MachineFigures:
        spec = self.machine.spec
        return MachineFigures(
            name=spec.name,
            source=self.source,
            overrides=self.overrides,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyQuery:
    """One step on one machine. ``pages`` are those that each row reads; None: a model draws them.

    ``contexts`` are the tokens of each request, the new one included.
    """

    machine: NamedMachine
    graph: Graph
    contexts: tuple[int, ...]
    kv_heads: int
    budget: int
    reserved: Reserved
    state_advance: StateAdvance
    placement: RowPlacement
    is_dense: bool = False
    pages: tuple[tuple[int, ...], ...] | None = None
    seed: int = 0

    @property
    def selection(self) -> LatencySelection:
        if self.is_dense:
            return "every page"
        return "uniform" if self.pages is None else "recorded"

    def key(self, versions: object) -> str:
        """Of all that the latency depends on; both engines give the same."""
        return content_hash(
            {
                "versions": versions,
                "machine": self.machine.figures.machine_hash,
                "graph": graph_hash(self.graph),
                "contexts": self.contexts,
                "kv_heads": self.kv_heads,
                "budget": None if self.is_dense else self.budget,
                "reserved": [self.reserved.first, self.reserved.last],
                "state_advance": self.state_advance.value,
                "placement": self.placement.value,
                "selection": self.selection,
                "pages": self.pages,
                "seed": self.seed,
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


def geometry_on_machine(geometry: Geometry, dtype: DType) -> Geometry:
    """A model's sizes, kept in the machine's type."""
    return replace(geometry, **dtypes_of(dtype))


def spread_layers(layers: Sequence[Item], batch: int) -> tuple[Item, ...]:
    """A layer for each request, at equal distances; a single request has the one in the middle.

    >>> spread_layers("abcde", 1), spread_layers("abcde", 2), spread_layers("ab", 4)
    (('c',), ('b', 'd'), ('a', 'a', 'b', 'b'))
    """
    return tuple(layers[(2 * place + 1) * len(layers) // (2 * batch)] for place in range(batch))


def step_figures(spec: LatencySpec, geometry: Geometry, kv_heads: int) -> StepFigures:
    return StepFigures(
        placement=spec.placement.value,
        batch=spec.batch,
        kv_heads=kv_heads,
        query_heads=geometry.query_heads,
        key_dim=geometry.key_dim,
        value_dim=geometry.value_dim,
        page_size=geometry.page_size,
        dtype=spec.dtype.value,
    )


def simulate_latency(query: LatencyQuery) -> int:
    """Picoseconds from the host's first submission to its knowing of the last completion."""
    step = DecodeStep(
        machine=query.machine.machine,
        graph=query.graph,
        contexts=query.contexts,
        kv_heads=query.kv_heads,
        plan=plan_pages(query.budget, query.reserved, state_advance=query.state_advance),
        placement=query.placement,
        is_dense=query.is_dense,
        selection=_selection(query),
        seed=query.seed,
    )
    return simulate_step(step, tells_stages=False).latency_ps


def _selection(query: LatencyQuery) -> SelectionModel | None:
    if query.is_dense:
        return None
    return Uniform(query.seed) if query.pages is None else Recorded(query.pages)
