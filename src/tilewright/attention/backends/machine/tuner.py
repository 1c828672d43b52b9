"""Choices for a flow on a machine: placement of its rows by cost, tiling by simulating one.

Rows of other PEs do the same beside a simulated row, so it stands for all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tilewright.attention.backends.machine.compiled import kernels_for, target_of
from tilewright.attention.backends.machine.layout import RowLayout, RowPlacement
from tilewright.attention.backends.machine.memory import deploy_rows, layout_of
from tilewright.attention.backends.machine.selection import Uniform, model_pages, planned_counts
from tilewright.attention.backends.machine.step import prepare_step
from tilewright.attention.codegen import Target, Tiling
from tilewright.attention.codegen.plan.fusion import memory_ps, turns_of
from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import (
    PlanSpec,
    RowFacts,
    StepPlan,
    earlier_state_pages,
    most_candidates,
    plan_step,
)
from tilewright.canonical import content_hash
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import CodegenError, KernelError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine, machine_hash
from tilewright.records import installed_version, read_record, write_record
from tilewright.records.attention.flow import TilingTrial, TuningRecord
from tilewright.units import format_ps

WAYS = 3  # over the tree of members: candidates up, the last one down, attention up


@dataclass(frozen=True, slots=True)
class PlacementCost:
    """What a placement is expected to take; ``busy_pes`` have some of it to do."""

    placement: RowPlacement
    time_ps: int
    busy_pes: int

    def __str__(self) -> str:
        return f"{self.placement} {format_ps(self.time_ps)} on {self.busy_pes} PEs"


def choose_placement(costs: Sequence[PlacementCost]) -> PlacementCost:
    """What takes the least time; of equals the one with fewer PEs, then the first."""
    return min(costs, key=lambda cost: (cost.time_ps, cost.busy_pes))


def placement_costs(
    machine: Machine,
    graph: Graph,
    plan: StepPlan,
    *,
    num_tokens: tuple[int, ...],
    num_kv_heads: int,
    device: str = "all",
) -> tuple[PlacementCost, ...]:
    """Of all placements that the machine has: bytes of the busiest PE, and messages of its row."""
    found = []
    for placement in RowPlacement:
        layout = layout_of(
            machine,
            graph,
            placement=placement,
            num_tokens=num_tokens,
            num_kv_heads=num_kv_heads,
            device=device,
        )
        target = target_of(machine, layout)
        file = kernels_for(graph, target, most=most_candidates(plan)).file
        pages = layout.member_pages * layout.members
        listed = max((budget.at_most for budget in plan.budgets), default=pages)
        predicted = file.predicted_bytes(pages=pages, listed=min(listed, pages), heads=num_kv_heads)
        row_bytes = sum(predicted.values())
        levels = (layout.members - 1).bit_length()
        row_ps = memory_ps(target, row_bytes // layout.members) + WAYS * levels * target.message_ps
        time_ps = turns_of(target) * row_ps + len(file.step) * target.launch_ps
        found.append(PlacementCost(placement, time_ps, len(layout.used_pes)))
    return tuple(found)


FACTORS = (0.25, 0.5, 2.0, 4.0)  # of the generator's own choice, one size after the other
SEARCHED = ("attend_tokens", "max_elements", "page_tile")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSpec:
    """The row: so many tokens, on these PEs, under this plan; its pages are drawn by a seed."""

    machine: Machine
    graph: Graph
    context: int
    plan: PlanSpec = field(default_factory=PlanSpec)
    placement: RowPlacement = RowPlacement.HEAD
    seed: int = 0
    engine: EngineKind | Auto = AUTO

    @property
    def num_pages(self) -> int:
        return -(-self.context // self.graph.geometry.page_size)

    @property
    def layout(self) -> RowLayout:
        tokens = (self.context,)
        return layout_of(
            self.machine, self.graph, placement=self.placement, num_tokens=tokens, num_kv_heads=1
        )


@dataclass(slots=True)
class Tuner:
    """Keeps what it found by what it depends on: in this process, and in a folder if it has one."""

    folder: Path | None = None
    num_simulated: int = 0
    _found: dict[str, TuningRecord] = field(default_factory=dict)

    def tune(self, spec: TuneSpec) -> TuningRecord:
        """Try other sizes around the generator's, each alone, keeping what is faster."""
        key = _key(spec)
        if key in self._found:
            return self._found[key]
        file = None if self.folder is None else self.folder / f"tiling-{key}.json"
        if file is not None and file.is_file():
            found = read_record(file, TuningRecord)
        else:
            found = self._search(spec, key)
            if file is not None:
                write_record(file, found)
        self._found[key] = found
        return found

    def _search(self, spec: TuneSpec, key: str) -> TuningRecord:
        target = target_of(spec.machine, spec.layout)
        best = Tiling.for_target(spec.graph.geometry, target)
        least_ps = self._simulate(spec, target, best)
        trials = [_trial(best, least_ps)]
        for name in SEARCHED:
            for tiling in _neighbours(best, name):
                try:
                    latency_ps = self._simulate(spec, target, tiling)
                except (CodegenError, KernelError):  # a tile that does not fit on the chip
                    continue
                trials.append(_trial(tiling, latency_ps))
                if latency_ps < least_ps:
                    best, least_ps = tiling, latency_ps
        return TuningRecord(key=key, best=_trial(best, least_ps), trials=tuple(trials))

    def _simulate(self, spec: TuneSpec, target: Target, tiling: Tiling) -> int:
        self.num_simulated += 1
        torch = RuntimeContext(spec.machine, engine=spec.engine, data=False)
        graph, tokens = spec.graph, (spec.context,)
        memory = deploy_rows(torch, graph, spec.layout, num_tokens=tokens, values=None)
        facts = [RowFacts(spec.num_pages, spec.context)]
        plan = plan_step(spec.plan, facts)
        marks = model_pages(Uniform(spec.seed), plan, planned_counts(graph, plan).tolist())
        kernels = kernels_for(graph, target, tiling, most=most_candidates(plan))
        scale = float(graph.geometry.key_dim**-0.5)
        saved = earlier_state_pages(spec.plan, facts, graph)
        step = prepare_step(
            torch, memory, kernels, plan, scale=scale, marks=marks, saved_pages=saved
        )
        launches = step.run(torch).launches
        return launches[-1].report.completed_ps - launches[0].report.submitted_ps


def tiling_of(trial: TilingTrial) -> Tiling:
    """The sizes of a trial."""
    return Tiling(**trial.tiling)


def _trial(tiling: Tiling, latency_ps: int) -> TilingTrial:
    return TilingTrial(tiling=asdict(tiling), latency_ps=latency_ps)


def _neighbours(tiling: Tiling, name: str) -> Iterator[Tiling]:
    size = getattr(tiling, name)
    for factor in FACTORS:
        if size * factor >= 1:
            yield replace(tiling, **{name: int(size * factor)})


def _key(spec: TuneSpec) -> str:
    facts = spec.plan.budget.bounds(RowFacts(spec.num_pages, spec.context), spec.plan.reserved)
    return content_hash(
        {
            "machine": machine_hash(spec.machine.spec),
            "graph": graph_hash(spec.graph),
            "context": spec.context,
            "budget": [facts.at_least, facts.at_most],
            "reserved": [spec.plan.reserved.first, spec.plan.reserved.last],
            "state_advance": spec.plan.state_advance.value,
            "placement": spec.placement.value,
            "seed": spec.seed,
            "version": installed_version(),
        }
    )
