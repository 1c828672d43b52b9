"""What carries out the requests of one context: a machine on a clock, its memories, its programs.

Host code takes no simulated time. A request becomes tasks at once; whoever waits for it lets time
pass until it is complete. A program of the hub that waits is suspended instead: nobody but the
outermost caller drives the clock. An error inside ends all that is under way, and what comes next
runs on a device that was built anew (ADR 0020).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakMethod

from tilewright.device.build import Device
from tilewright.device.command_path import CommandPath, Delivery
from tilewright.device.mmu import Mmu
from tilewright.engine import AUTO, Auto, EngineKind, TaskGraph
from tilewright.engine.hub import Hub, Program
from tilewright.engine.message import first_line
from tilewright.errors import DeadlockError, LaunchEndedError, TilewrightError
from tilewright.language.effect import Effect, EffectLog
from tilewright.language.launch import Launcher, quiet_values
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.page_table import PageTable
from tilewright.memory.sanitizer_space import QuarantinedSpace
from tilewright.memory.sanitizer_tensor import TensorBook
from tilewright.memory.virtual import VirtualSpace
from tilewright.runtime.host_effect import HostEffects
from tilewright.runtime.host_watch import HostWatch
from tilewright.runtime.launch_report import LaunchReport
from tilewright.runtime.memory import DeviceMemory
from tilewright.runtime.placement_pages import TensorPages
from tilewright.runtime.request import Completion, Request
from tilewright.runtime.running_device import (
    RunningDevice,
    apply_served,
    build_device_at,
    build_running_device,
)
from tilewright.runtime.tensor_book import book_of

__all__ = ("Driver", "Observer")


class Observer(Protocol):
    """Somebody who looks at launches and changes no time."""

    def launch_submitted(self, name: str, kernel: str, owners: Mapping[int, PeCoord]) -> None:
        """Owners are the engine's numbers of what runs on PEs."""

    def launch_completed(self, report: LaunchReport) -> None: ...

    def device_built(self, device: Device) -> None:
        """Look at this device from now on: an error has ended the one before."""

    @property
    def commands(self) -> Any:
        """Watches what programs issue (`language.Program`); None if nobody does."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What is left of devices that errors have ended."""

    now_ps: int = 0
    num_events: int = 0
    next_program: int = 0  # owners of tasks keep their numbers apart
    observe: Callable[[], None] | None = None


class Driver:
    """One device and all that is under way on it."""

    def __init__(
        self,
        machine: Machine,
        choice: EngineKind | Auto = AUTO,
        *,
        correlation_id: str = "context",
        sanitize: bool = False,
    ) -> None:
        self.machine = machine
        self.correlation_id = correlation_id
        self.page_bytes = machine.spec.pe.mmu.page_bytes
        self.memory = DeviceMemory(machine)
        self.watch = HostWatch(lambda: self.now_ps) if sanitize else None
        self.space = (QuarantinedSpace if sanitize else VirtualSpace)(page_bytes=self.page_bytes)
        self.tensors: dict[int, TensorPages] = {}  # that have memory, by where they start
        self.requests: list[Request] = []
        self._open: dict[int | None, dict[int, Request]] = {}
        """By worker: requests that are under way, or have failed and nobody was told."""
        self._host_effects = HostEffects()
        self.reports: list[LaunchReport] = []  # of launches that are over, in that order
        self.observer: Observer | None = None
        self._end_listeners: list[WeakMethod[Callable[[], None]]] = []
        self.num_ends = 0  # errors that have ended a device
        self._mmus: dict[PeCoord, Mmu] = {}
        self._choice = choice
        self._ended: _Ended = _Ended()  # what is left of the devices before this one
        self._running: RunningDevice | None = self._build()

    # -- the device ------------------------------------------------------------------------------

    def _build(self) -> RunningDevice:
        device = build_device_at(self.machine, self._choice, start_ps=self._ended.now_ps)
        if self.watch is None:
            effects = self.memory.build_effect_log(device.engine.kind)
        else:
            effects = self.watch.renew_effects()
        return build_running_device(
            device, self.memory, self.mmu, effects, self._book, self._ended.next_program
        )

    def _book(self) -> TensorBook:
        """Describe the tensors that have memory, for the text of an error."""
        return book_of(self.tensors.values())

    @property
    def running(self) -> RunningDevice:
        """The device that programs run on; built anew at the first use after an error."""
        if self._running is None:
            self._running = self._build()
            self._running.hub.observe = self._ended.observe
            if self.observer is not None:
                self.observer.device_built(self._running.device)
        return self._running

    @property
    def device(self) -> Device:
        """The device of ``running``, and so are the following."""
        return self.running.device

    @property
    def path(self) -> CommandPath:
        return self.running.path

    @property
    def effects(self) -> EffectLog:
        return self.running.effects

    @property
    def hub(self) -> Hub:
        return self.running.hub

    @property
    def launcher(self) -> Launcher:
        return self.running.launcher

    @property
    def now_ps(self) -> int:
        """The simulated time, which an error does not turn back."""
        running = self._running
        return self._ended.now_ps if running is None else running.device.engine.now_ps

    @property
    def num_events(self) -> int:
        """How many events there were, on all devices so far."""
        running = self._running
        return self._ended.num_events + (
            0 if running is None else running.device.engine.core.events
        )

    def mmu(self, pe: PeCoord) -> Mmu:
        """Of a PE, with a page table of its own."""
        if pe not in self._mmus:
            name = f"{place_name(pe)}.mmu"
            table = PageTable(name, self.page_bytes)
            self._mmus[pe] = Mmu(name, self.machine.spec.pe.mmu, table)
        return self._mmus[pe]

    @property
    def mmus(self) -> Mapping[PeCoord, Mmu]:
        """Those that were ever asked for."""
        return self._mmus

    # -- requests --------------------------------------------------------------------------------

    def submit(
        self, what: str, graph: TaskGraph, *, end: int | None = None, after: Iterable[Request] = ()
    ) -> Request:
        """Hand over the tasks of a request, which is complete when ``end`` is (else the last)."""
        request = self._new_request(what)
        self._hand_over(request, graph, end, [other.end_task for other in after])
        return request

    def deliver(
        self, what: str, delivery: Delivery, after: Iterable[Request] = ()
    ) -> tuple[Request, dict[PeCoord, int]]:
        """Send a command; the tasks by which PEs have it, by their ids."""
        request = self._new_request(what)
        first = self._hand_over(
            request, delivery.graph, delivery.end, [other.end_task for other in after]
        )
        engine = self.device.engine
        return request, {
            pe: engine.task_id(delivery.graph, first, task)
            for pe, task in delivery.arrivals.items()
        }

    def add_host_effect(self, effect: Effect, what: str) -> int:
        """Return the number of an effect on memory or page tables that the host asks for.

        An error in a kernel does not stop it: what is under way then happens at once.
        """
        return self._host_effects.add(self.effects, effect, what)

    def _new_request(self, what: str) -> Request:
        number = len(self.requests)
        signal = self.device.engine.add_signal(f"end of request {number} ({what})")
        holder: list[Request] = []
        program = self.hub.spawn(lambda: self._follow(holder[0]), name=f"request {number} ({what})")
        request = Request(
            number, self.correlation_id, what, self.now_ps, signal, program, self._worker
        )
        holder.append(request)
        self.requests.append(request)
        self._open.setdefault(request.worker, {})[number] = request
        return request

    def _hand_over(
        self, request: Request, graph: TaskGraph, end: int | None, after: Sequence[int]
    ) -> int:
        engine = self.device.engine
        if not len(graph):
            graph.timer()
        first = engine.submit(graph, owner=request.program.number, after=tuple(after))
        last = len(graph) - 1 if end is None else end
        request.end_task = engine.task_id(graph, first, last)
        return first

    def _follow(self, request: Request) -> None:
        """The request's own program: it notes when the request is complete."""
        self.hub.wait(request.end_task, request.what)
        request.complete(self.now_ps)
        if not request.failures:
            self._forget(request)
        self.device.engine.raise_signal(request.signal)

    def _forget(self, request: Request) -> None:
        """Wait for a request no more: it has succeeded, or somebody knows of its failure."""
        self._open.get(request.worker, {}).pop(request.request_id, None)

    def completed_request(self, what: str) -> Request:
        """One that had nothing to do."""
        graph = TaskGraph()
        graph.timer()
        return self.submit(what, graph)

    def note_launch(self, report: LaunchReport) -> None:
        """A launch is over."""
        self.reports.append(report)
        if self.observer is not None:
            self.observer.launch_completed(report)

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self, request: Request) -> Completion:
        """Wait until the request is complete and return how it went; raise its failure."""
        self._await(request)
        if self.watch is not None:
            self.watch.note_wait(request)
        self._forget(request)
        return request.check()

    def _await(self, request: Request) -> None:
        """Let time pass until the request is complete, however it goes."""
        if request.is_completed:
            return
        if self.hub.is_inside:
            self.hub.wait_signal(request.signal, 1)
        else:
            self.drive(until=request.program)

    @property
    def _worker(self) -> int | None:
        return self.hub.running.number if self.hub.is_inside else None

    def settle(self) -> None:
        """Wait for all that the caller has submitted; other workers' requests are their affair."""
        worker = self._worker
        self.wait_all(each for each in self._open.get(worker, {}).values() if not each.is_told)
        if self.watch is not None:
            self.watch.note_settled(worker)

    def wait_all(self, requests: Iterable[Request] | None = None) -> None:
        """Wait for these requests, else for all that were ever submitted, in that order.

        All are complete when the first failure is raised. A launch whose failure was raised before
        is left out.
        """
        asked = self.requests if requests is None else requests
        waited = [each for each in asked if each.programs is None or not each.is_told]
        if waited and not self.hub.is_inside:
            self._await(waited[-1])  # mostly the last one ends last: one run for all
        for request in waited:
            self._await(request)
        failed = []
        for request in waited:
            try:
                self.wait(request)
            except TilewrightError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def drive(self, until: Program) -> None:
        """Let time pass until a program of the hub has ended; for callers outside of the hub."""
        running = self.running
        try:
            with quiet_values():
                running.hub.run(until)
        except BaseException as error:
            if running.hub.has_ended:
                self._end(running, error)
            raise

    def add_end_listener(self, method: Callable[[], None]) -> None:
        """Call a method when an error has ended all that was under way, while its object lives."""
        living = [each for each in self._end_listeners if each() is not None]
        self._end_listeners = [*living, WeakMethod(method)]

    # -- errors ----------------------------------------------------------------------------------

    def _end(self, running: RunningDevice, error: BaseException) -> None:
        """End all that is under way after an error; memories and page tables stay as they are.

        What memories had served is visible, and what the host has asked for happens now. Programs
        are gone, and what they had issued beyond that never happens.
        """
        engine = running.device.engine
        self.num_ends += 1
        self._running = None
        self._ended = _Ended(
            engine.now_ps, self._ended.num_events + engine.core.events,
            running.hub.next_number, running.hub.observe,
        )  # fmt: skip
        apply_served(running.effects, engine, error)
        self._host_effects.apply_all(running.effects, self.now_ps)
        for mmu in self._mmus.values():
            mmu.flush()
        self._end_requests(running.hub.failed, error)
        for listener in self._end_listeners:
            call = listener()
            if call is not None:
                call()

    def _end_requests(self, failed: Program | None, error: BaseException) -> None:
        """Complete what the host has asked for; fail the launches.

        Whoever catches the error knows of the launch that it came from, and of what workers have
        begun. A deadlock and an interrupt are about all launches, an error in an effect about the
        one that is alone.
        """
        requests = [each for by_id in self._open.values() for each in by_id.values()]
        under_way = [each for each in requests if not each.is_completed]
        launches = [each for each in under_way if each.programs is not None]
        is_about_all = not isinstance(error, Exception) or (
            failed is None and (isinstance(error, DeadlockError) or len(launches) == 1)
        )
        for request in under_way:
            if request.rings is not None:
                request.rings.explain(error)
                request.rings = None
            if request.programs is not None:
                request.failures.append(_ended_error(request, self.now_ps, error))
                is_own = failed is not None and failed.number in request.programs
                request.is_told = is_own or is_about_all or request.worker is not None
            request.complete(self.now_ps)
            if request.is_told or not request.failures:
                self._forget(request)
                if self.watch is not None:
                    self.watch.note_wait(request)


def _ended_error(request: Request, at_ps: int, error: BaseException) -> LaunchEndedError:
    """Return what the handle of a launch raises that an error has ended."""
    found = f"programs that were ended at {at_ps} ps by {first_line(error)}"
    fix = "correct what failed and launch it again; its stores up to that time are visible"
    return LaunchEndedError(request.what, found, "programs that run to their end", fix)
