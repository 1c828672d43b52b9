"""One decode step of a layer's attention on a machine: its values, its time, and its stages."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import process_time

from tilewright.analysis.listener import ListenersOf
from tilewright.analysis.phases import sample_phases
from tilewright.analysis.usage import Usage, UsedBlock
from tilewright.attention.backends.machine import (
    MERGES,
    LoadedKernels,
    MachineStepResult,
    PageOrder,
    RowLayout,
    RowPlacement,
    SelectionModel,
    StepValues,
    check_table_copies,
    deploy_rows,
    kernels_for,
    layout_of,
    model_pages,
    planned_counts,
    prepare_step,
    target_of,
)
from tilewright.attention.codegen import Cut, KernelFile, Merge, Tiling
from tilewright.attention.graph import Graph
from tilewright.attention.planner import (
    MassRule,
    PlanSpec,
    RowFacts,
    earlier_state_pages,
    most_candidates,
    plan_step,
)
from tilewright.device.build import Device
from tilewright.engine import AUTO, Auto, EngineKind
from tilewright.errors import AttentionError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine, shift_refresh
from tilewright.memory.sanitizer.finding import Findings
from tilewright.programs.bound import Bound
from tilewright.records import Bottleneck
from tilewright.records.attention.decode import DecodeStage
from tilewright.records.phases import PhaseSpread
from tilewright.studies.decode.ideal import IdealStep, ideal_step
from tilewright.studies.decode.stage import StepWatch, explain_step


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStep:
    """What to simulate. Without ``values`` only time passes, and ``selection`` chooses the pages.

    ``contexts`` are the tokens of each request, the new one included. A dense step reads every
    page by the same attention kernel.
    """

    machine: Machine
    graph: Graph  # optimized
    contexts: tuple[int, ...]
    kv_heads: int
    plan: PlanSpec = field(default_factory=PlanSpec)
    placement: RowPlacement = RowPlacement.HEAD
    is_dense: bool = False
    selection: SelectionModel | None = None
    values: StepValues | None = None
    tiling: Tiling | None = None  # None: that of the generator for this machine
    cut: Cut | None = None  # None: what the generator's cost model decides
    merges: frozenset[Merge] = MERGES  # ways to join the parts of a row that may be taken
    order: PageOrder = PageOrder.WRITTEN
    device: str = "all"
    seed: int = 0
    engine: EngineKind | Auto = AUTO
    sanitize: bool = False

    @property
    def carries_data(self) -> bool:
        return self.values is not None

    @property
    def plan_spec(self) -> PlanSpec:
        """The plan that the step follows: a dense one reads every page."""
        if not self.is_dense:
            return self.plan
        return PlanSpec(reserved=self.plan.reserved, dense_layers=frozenset({0}))

    def facts(self) -> list[RowFacts]:
        """Return what a plan has to know of each row."""
        size = self.graph.geometry.page_size
        return [
            RowFacts(-(-count // size), count, head=head)
            for count in self.contexts
            for head in range(self.kv_heads)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTiming:
    """What a step gave. Stages add up to ``latency_ps`` and ``num_bytes``."""

    latency_ps: int  # from the host's first submission to its knowing of the last completion
    phases: PhaseSpread | None  # latency over refresh phases; None: nothing refreshes
    stages: tuple[DecodeStage, ...]
    num_bytes: int  # at the HBM controllers
    ideal: IdealStep
    bottleneck: Bottleneck | None
    used: tuple[UsedBlock, ...]  # the most used blocks
    usage: tuple[Usage, Usage]  # of all servers, before the first launch and after the last
    result: MachineStepResult  # launches, pages that rows read, outputs
    num_events: int
    run_s: float  # CPU time of simulating the launches; laying out memory is not counted
    layout: RowLayout
    row_pages: tuple[int, ...]  # of each request
    kernels: KernelFile
    findings: Findings | None  # of the sanitizer, if it looked on

    @property
    def mean_ps(self) -> float:
        """Latency that stands for the step: the mean over refresh phases."""
        return self.latency_ps if self.phases is None else self.phases.mean_ps

    @property
    def bound(self) -> Bound:
        return self.ideal.bound


def simulate_step(
    step: DecodeStep,
    *,
    listeners_of: ListenersOf | None = None,
    tells_stages: bool = True,
    phases: int | None = 1,
) -> StepTiming:
    """Run the step; where stages share a launch, once more to tell them apart.

    ``listeners_of`` looks on at the first execution. Without ``tells_stages`` there is no second
    one, and there are no stages. Only the latency is taken at other refresh phases; ``phases`` is
    how many, None: by the rule of ADR 0029.
    """
    layout, kernels = _compile(step)

    def watched_by(device: Device) -> StepWatch:
        return StepWatch(device, *(listeners_of(device) if listeners_of else ()))

    done = _execute(step, layout, kernels, watched_by)
    launches = done.result.launches
    explained = explain_step(
        done.watch,
        launches,
        kernels,
        (lambda watched: _execute(step, layout, kernels, watched).result.launches)
        if tells_stages
        else None,
    )
    ideal = ideal_step(
        step.machine,
        step.graph,
        layout,
        step.contexts,
        done.result.pages,
        is_dense=step.is_dense,
    )
    latency_ps = _latency_ps(done)

    def latency_of(shift_ps: int) -> int:
        shifted = replace(step, machine=shift_refresh(step.machine, shift_ps), sanitize=False)
        return _latency_ps(_execute(shifted, layout, kernels, StepWatch))

    return StepTiming(
        latency_ps=latency_ps,
        phases=sample_phases(step.machine.spec, phases, latency_ps, latency_of),
        stages=explained.stages(ideal.num_bytes) if tells_stages else (),
        num_bytes=explained.num_bytes,
        ideal=ideal,
        bottleneck=explained.bottleneck,
        used=explained.used,
        usage=(done.watch.usage[0], done.watch.usage[1]),
        result=done.result,
        num_events=done.num_events,
        run_s=done.run_s,
        layout=layout,
        row_pages=tuple(-(-count // step.graph.geometry.page_size) for count in step.contexts),
        kernels=kernels.file,
        findings=done.findings,
    )


def _latency_ps(done: "_Done") -> int:
    launches = done.result.launches
    return launches[-1].report.completed_ps - launches[0].report.submitted_ps


def plan_rows(step: DecodeStep) -> RowLayout:
    """How rows lie; what the machine cannot have is refused."""
    return layout_of(
        step.machine,
        step.graph,
        placement=step.placement,
        num_tokens=step.contexts,
        num_kv_heads=step.kv_heads,
        device=step.device,
    )


def _compile(step: DecodeStep) -> tuple[RowLayout, LoadedKernels]:
    """How rows lie, and the kernels for that."""
    _check(step)
    layout, plan = plan_rows(step), plan_step(step.plan_spec, step.facts())
    if step.carries_data:
        check_table_copies(step.graph, layout)
    kernels = kernels_for(
        step.graph,
        target_of(step.machine, layout, step.merges),
        step.tiling,
        step.cut,
        is_dense=step.is_dense,
        by_mass=any(isinstance(budget.rule, MassRule) for budget in plan.budgets),
        most=most_candidates(plan),
    )
    return layout, kernels


@dataclass(frozen=True, slots=True)
class _Done:
    """One execution on a context of its own."""

    result: MachineStepResult
    watch: StepWatch
    num_events: int  # of the step alone
    run_s: float
    findings: Findings | None


def _check(step: DecodeStep) -> None:
    if step.carries_data and step.selection is not None:
        found = f"values and the selection {step.selection.name!r}"
        fix = "leave one of them out"
        raise AttentionError("decode step", found, "scores that choose, or a model", fix)
    if not step.carries_data and not step.is_dense and step.selection is None:
        fix = "name a selection model: uniform, recent, or a recorded one"
        raise AttentionError("decode step", "neither values nor a selection", "one of them", fix)


def _execute(
    step: DecodeStep,
    layout: RowLayout,
    kernels: LoadedKernels,
    watched_by: Callable[[Device], StepWatch],
) -> _Done:
    if step.carries_data:
        gc.collect()  # the memories of an earlier context are in a cycle with its programs
    torch = RuntimeContext(
        step.machine,
        step.device,
        seed=step.seed,
        engine=step.engine,
        data=step.carries_data,
        sanitize=step.sanitize,
    )
    memory = deploy_rows(
        torch,
        step.graph,
        layout,
        num_tokens=step.contexts,
        values=step.values,
        order=step.order,
        seed=step.seed,
    )
    plan = plan_step(step.plan_spec, step.facts())
    marks = None
    if step.selection is not None and not step.is_dense:
        marks = model_pages(step.selection, plan, planned_counts(step.graph, plan).tolist())
    saved_pages = None if step.values is None else step.values.saved_pages
    if saved_pages is None:  # those whose state earlier steps would have saved
        saved_pages = earlier_state_pages(step.plan, step.facts(), step.graph)
    prepared = prepare_step(
        torch,
        memory,
        kernels,
        plan,
        scale=float(step.graph.geometry.key_dim**-0.5),
        marks=marks,
        saved_pages=saved_pages,
    )
    core = torch.driver.device.engine.core
    watch, num_events = watched_by(torch.driver.device), core.events
    watch.attach(torch.driver)
    start = process_time()
    result = prepared.run(torch)
    run_s = process_time() - start
    findings = None if torch.driver.watch is None else torch.findings
    return _Done(result, watch, core.events - num_events, run_s, findings)
