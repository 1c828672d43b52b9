"""The stages of a decode step: what each has of its time, and of the bytes of the memories."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tilewright.analysis.breakdown import break_down_run
from tilewright.analysis.launch_path import PathListener, last_ends
from tilewright.analysis.listener import Listener, Listeners, SubmittedLaunch
from tilewright.analysis.trace.critical_path import ProgramPath
from tilewright.analysis.trace.servers import ServerTable
from tilewright.analysis.usage import Usage, UsedBlock, bottleneck_of, most_used
from tilewright.attention.backends.machine import LoadedKernels, StageBook, StageLaunch
from tilewright.attention.codegen import Stage
from tilewright.device.build import Device
from tilewright.errors import InternalError
from tilewright.machine.node import NodeKind
from tilewright.records import Bottleneck
from tilewright.records.attention.decode import DecodeStage, StageName
from tilewright.runtime.driver import Driver
from tilewright.runtime.request import LaunchReport

LAUNCH: StageName = "launch"
NUM_BLOCKS = 12  # of the most used units, links and memories
NAMES: Mapping[Stage, StageName] = {
    Stage.COMPLETION: "page completion",
    Stage.SCORING: "scoring",
    Stage.SELECTION: "selection",
    Stage.ATTENTION: "attention",
    Stage.MERGE: "merge",
}


@dataclass(slots=True)
class StepWatch:
    """Looks on at the launches of a step: bytes that memories have served, and what was in use."""

    device: Device
    listeners: Sequence[Listener] = ()
    commands: Any = None
    bytes_after: list[int] = field(default_factory=list)  # before the first launch, after each
    usage: list[Usage] = field(default_factory=list)

    def attach(self, driver: Driver) -> None:
        Listeners([self, *self.listeners], self.commands).attach(driver)

    def launch_submitted(self, launch: SubmittedLaunch) -> None:
        del launch
        if not self.usage:
            self.usage.append(Usage.now(self.device))
            self.bytes_after.append(served_bytes(self.device))

    def launch_completed(self, report: LaunchReport) -> None:
        del report
        self.bytes_after.append(served_bytes(self.device))
        self.usage[1:] = [Usage.now(self.device)]

    def device_built(self, device: Device) -> None:
        """Count from now on, on this device."""
        self.device = device
        self.usage.clear()
        self.bytes_after.clear()

    def look(self) -> None:
        """What it wants to know, it hears at the ends of launches."""


def served_bytes(device: Device) -> int:
    """By all HBM controllers until now."""
    hbm, nodes = device.machine.spec.cube.hbm, device.machine.nodes
    bursts = sum(
        channel.read_bursts + channel.write_bursts
        for node, server in device.memories.items()
        if nodes[node].kind is NodeKind.HBM_CTRL
        for channel in device.engine.memory_counters(server)
    )
    return bursts * hbm.counted_bytes


@dataclass(frozen=True, slots=True)
class Explained:
    """Times and bytes by stage, and the greatest share of the time."""

    times_ps: Mapping[StageName, int]
    num_bytes_of: Mapping[StageName, int]
    bottleneck: Bottleneck | None
    used: tuple[UsedBlock, ...]

    @property
    def num_bytes(self) -> int:
        return sum(self.num_bytes_of.values())

    def stages(self, ideal_bytes: Mapping[Stage, int]) -> tuple[DecodeStage, ...]:
        """Stages that took time, moved bytes, or should have."""
        ideal = {name: ideal_bytes[stage] for stage, name in NAMES.items()}
        rows = [
            DecodeStage(
                name=name,
                latency_ps=self.times_ps.get(name, 0),
                bytes=self.num_bytes_of.get(name, 0),
                ideal_bytes=ideal.get(name, 0),
            )
            for name in (*NAMES.values(), LAUNCH)
        ]
        return tuple(row for row in rows if row.latency_ps or row.bytes or row.ideal_bytes)


Again = Callable[[Callable[[Device], StepWatch]], tuple[StageLaunch, ...]]
"""Executes the step once more, with somebody else looking on."""


def explain_step(
    watch: StepWatch, launches: Sequence[StageLaunch], kernels: LoadedKernels, again: Again | None
) -> Explained:
    """A launch of one stage is told by its own times; others by a second execution, or not."""
    paths: dict[int, ProgramPath] = {}
    book: StageBook | None = None
    if again is not None and any(len(launch.stages) > 1 for launch in launches):
        paths, book = _look_again(watch.device, launches, kernels, again)
    times: Counter[StageName] = Counter()
    moved: Counter[StageName] = Counter()
    served = (after - before for before, after in pairwise(watch.bytes_after))
    for launch, num_bytes in zip(launches, served, strict=True):
        times.update(_times(launch, paths, book))
        if len(launch.stages) == 1:
            moved[NAMES[launch.stages[0]]] += num_bytes
        else:
            moved.update(_divided(launch, num_bytes, book))
    reports = [launch.report for launch in launches]
    window = (reports[0].submitted_ps, reports[-1].completed_ps)
    parts = break_down_run(window, reports, paths)
    before, after = watch.usage
    used = tuple(most_used(before, after, ServerTable(watch.device), NUM_BLOCKS))
    # without a path an execution is not told apart, and only blocks can say what it was
    told = parts if paths else parts.model_copy(update={"execution": 0})
    return Explained(times, moved, bottleneck_of(told, used, parts.total_ps), used)


def _look_again(
    device: Device, launches: Sequence[StageLaunch], kernels: LoadedKernels, again: Again
) -> tuple[dict[int, ProgramPath], StageBook]:
    ends_ps = last_ends(launch.report for launch in launches)
    burst_bytes = device.machine.spec.cube.hbm.counted_bytes
    book = StageBook(dict(kernels.file.stage_of), kernels.path, burst_bytes=burst_bytes)
    found: list[PathListener] = []

    def watched(new_device: Device) -> StepWatch:
        found.append(PathListener(new_device, ends_ps))
        return StepWatch(new_device, found, book)

    repeated = again(watched)
    if [each.report.last_end_ps for each in repeated] != [
        each.report.last_end_ps for each in launches
    ]:
        raise InternalError("decode step", "other times in a second run", "the same", "report this")
    return found[0].paths, book


def _times(
    launch: StageLaunch, paths: Mapping[int, ProgramPath], book: StageBook | None
) -> dict[StageName, int]:
    report, first = launch.report, launch.stages[0]
    owner = report.last_owner
    if len(launch.stages) == 1 or owner is None or owner not in paths or book is None:
        return {NAMES[first]: report.execution_ps, LAUNCH: report.latency_ps - report.execution_ps}
    times: Counter[StageName] = Counter()
    for command, time_ps in paths[owner].commands_ps.items():
        stage = book.stage_of_command(owner, command)
        times[NAMES[stage or first]] += time_ps
    times[LAUNCH] += report.latency_ps - sum(times.values())
    return dict(times)


def _divided(launch: StageLaunch, num_bytes: int, book: StageBook | None) -> dict[StageName, int]:
    """Bytes by the accesses of each stage; they must be those that the controllers counted."""
    if book is None:
        return {NAMES[launch.stages[0]]: num_bytes}
    by_stage = book.bytes_of(launch.report.kernel)
    if sum(by_stage.values()) != num_bytes:
        found = f"accesses of {sum(by_stage.values())} bytes, and {num_bytes} at the controllers"
        where = f"launch {launch.report.name!r}"
        raise InternalError(where, found, "as many", "report this")
    first = launch.stages[0]
    return {NAMES[stage or first]: count for stage, count in by_stage.items()}
