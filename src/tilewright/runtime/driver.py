"""What carries out the requests of one context: a machine on a clock, its memories, its programs.

Host code takes no simulated time. A request becomes tasks at once; whoever waits for it lets time
pass until it is complete. A program of the hub that waits is suspended instead: nobody but the
outermost caller drives the clock. An error inside ends all that is under way, and what comes next
runs on a device that was built anew (ADR 0020).
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from weakref import WeakMethod, WeakSet, finalize, ref

from tilewright.device.build import Device
from tilewright.device.command import CommandPath, Delivery
from tilewright.engine import AUTO, Auto, EngineKind, TaskGraph
from tilewright.engine.fault import first_line
from tilewright.engine.hub import Hub
from tilewright.engine.hub_program import Program
from tilewright.engine.spec import Limits
from tilewright.errors import (
    DeadlockError,
    EngineError,
    LaunchEndedError,
    TilewrightError,
)
from tilewright.executor.effect import WatchedEffectLog
from tilewright.executor.launcher import Launcher
from tilewright.executor.post import Post
from tilewright.executor.quiet import quiet_values
from tilewright.executor.run import build_effect_log
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.memory.allocator import QuarantinedSpace, VirtualSpace, virtual_capacity_bytes
from tilewright.runtime.device import (
    DeviceMemory,
    HostEffect,
    Mmus,
    RunningDevice,
    apply_served,
    build_device_at,
)
from tilewright.runtime.host_watch import HostWatch, book_of, check_host_call
from tilewright.runtime.placement.pages import TensorPages
from tilewright.runtime.request import Completion, LaunchReport, Request, RequestBook


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


class _Closed(BaseException):
    """Why programs end that nobody lets go on: as an interrupt, it is about all of them."""


class Driver:
    """One device and all that is under way on it.

    What runs on the device refers to the driver weakly or not at all: a program that waits is never
    collected, and ends when the driver does.
    """

    def __init__(
        self,
        machine: Machine,
        choice: EngineKind | Auto = AUTO,
        *,
        correlation_id: str = "context",
        sanitize: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.machine = machine
        self.limits = Limits() if limits is None else limits
        self.correlation_id = correlation_id
        self.page_bytes = machine.spec.pe.mmu.page_bytes
        self.memory = DeviceMemory(machine)
        self.watch = HostWatch(_clock(ref(self))) if sanitize else None
        space = QuarantinedSpace if sanitize else VirtualSpace
        capacity_bytes = virtual_capacity_bytes(machine)
        self.space = space(page_bytes=self.page_bytes, capacity_bytes=capacity_bytes)
        self.tensors: dict[int, TensorPages] = {}  # that have memory, by where they start
        self.requests = RequestBook()
        self._deliveries: dict[int, Delivery] = {}  # of commands under way, by request
        self._host_effects: dict[int, HostEffect] = {}  # under way, by number in the log
        self.reports: list[LaunchReport] = []  # of launches that are over, in that order
        self.pes: dict[tuple[PeCoord, ...], tuple[PeCoord, ...]] = {}  # launches share them
        self.observer: Observer | None = None
        self.installed: dict[PeCoord, Post] = {}  # the rings that came last
        self._end_listeners: list[WeakMethod[Callable[[], None]]] = []
        self.num_ends = 0  # errors that have ended a device
        self.mmus = Mmus(machine.spec.pe.mmu)  # each with a page table of its own
        self._choice = choice
        self._ended: _Ended = _Ended()  # what is left of the devices before this one
        self._hubs: WeakSet[Hub] = WeakSet()  # whose programs end with the driver
        finalize(self, _close_hubs, self._hubs)
        self._running: RunningDevice | None = self._build()

    # -- the device ------------------------------------------------------------------------------

    def _build(self) -> RunningDevice:
        device = build_device_at(self.machine, self._choice, start_ps=self._ended.now_ps)
        events_left = max(0, self.limits.events - self._ended.num_events)
        device.engine.core.set_limits(events_left, self.limits.time_ps)
        if self.watch is None:
            effects = build_effect_log(device.engine.kind, self.memory.memories)
        else:
            effects = self.watch.effects = WatchedEffectLog()
        path = CommandPath(device)
        hub = Hub(device.engine, effects.apply, first_number=self._ended.next_program)
        launcher = Launcher(
            path, self.memory.memories, self.memory.locate, self.mmus,
            self.memory.tcm_used_bytes, partial(book_of, self.tensors.values()),
        )  # fmt: skip
        self._hubs.add(hub)
        return RunningDevice(device, path, effects, hub, launcher)

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

    # -- requests --------------------------------------------------------------------------------

    def submit(self, what: str, graph: TaskGraph) -> Request:
        """Hand over the tasks of a request, which is complete when the last of them is."""
        if not len(graph):
            graph.timer()
        return self._submit(what, graph, len(graph) - 1, ())[0]

    def deliver(
        self, what: str, delivery: Delivery, after: Iterable[Request] = ()
    ) -> tuple[Request, dict[PeCoord, int]]:
        """Send a command; the tasks by which PEs have it, by their ids."""
        request, first = self._submit(what, delivery.graph, delivery.end, after)
        engine = self.device.engine
        self._deliveries[request.request_id] = delivery
        return request, {
            pe: engine.task_id(delivery.graph, first, task)
            for pe, task in delivery.arrivals.items()
        }

    def tell(
        self,
        what: str,
        num_entries: Mapping[PeCoord, int],
        *,
        is_shared: bool,
        effects: Mapping[PeCoord, int] | None = None,
        after: Iterable[Request] = (),
    ) -> Request:
        """Send a command that each PE answers as soon as it is there."""
        path = self.running.path
        delivery = path.deliver(num_entries, is_shared=is_shared, effects=effects)
        for pe in num_entries:
            path.answer(delivery.graph, pe, delivery.answers[pe], (delivery.arrivals[pe],))
        return self.deliver(what, delivery, after)[0]

    def add_host_effect(self, act: Callable[[], object], what: str, *, changes: bool = True) -> int:
        """Return the number of what the host does to memory or page tables once a task is served.

        An error in a kernel does not stop it: what is under way then happens at once. ``changes``
        says whether anything is other than before.
        """
        effect = HostEffect(act, changes, self._host_effects)
        effect.number = self.running.effects.add(effect, 1, what)
        self._host_effects[effect.number] = effect
        return effect.number

    def _submit(
        self, what: str, graph: TaskGraph, end: int, after: Iterable[Request]
    ) -> tuple[Request, int]:
        """Make a request of tasks, which is complete when ``end`` is; tell where they begin."""
        check_host_call(what)
        hub, engine = self.hub, self.device.engine
        number = self.requests.num_requests
        program = hub.spawn(_follow, hub, ref(self), number, name=f"request {number} ({what})")
        request = Request(number, self.correlation_id, what, self.now_ps, program, self._worker)
        self.requests.add(request)
        tasks = tuple(other.end_task for other in after)
        first = engine.submit(graph, owner=program.number, after=tasks)
        request.end_task = engine.task_id(graph, first, end)
        return request, first

    def _complete(self, request: Request) -> None:
        """Note that the last task of a request has ended; who waits for it goes on."""
        request.complete(self.now_ps)
        if not request.failures:
            self.requests.note_success(request)
        delivery = self._deliveries.pop(request.request_id, None)
        if delivery is not None:
            self.running.path.end(delivery)
        if request.signal is not None:
            self.device.engine.raise_signal(request.signal)
            self.device.engine.remove_signal(request.signal)
            request.signal = None

    def note_launch(self, report: LaunchReport) -> None:
        """A launch is over."""
        self.reports.append(report)
        if self.observer is not None:
            self.observer.launch_completed(report)

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self, request: Request) -> Completion:
        """Wait until the request is complete and return how it went; raise its failure."""
        check_host_call(f"wait for {request.what}")
        self._await(request)
        if self.watch is not None:
            self.watch.note_wait(request)
        self.requests.note_told(request)
        return request.check()

    def _await(self, request: Request) -> None:
        """Let time pass until the request is complete, however it goes."""
        if request.program is None:
            return
        if not self.hub.is_inside:
            self.drive(until=request.program)
            return
        if request.signal is None:
            name = f"end of request {request.request_id} ({request.what})"
            request.signal = self.device.engine.add_signal(name)
        self.hub.wait_signal(request.signal, 1)

    @property
    def _worker(self) -> int | None:
        return self.hub.running.number if self.hub.is_inside else None

    def settle(self) -> None:
        """Wait for all that the caller has submitted; other workers' requests are their affair."""
        check_host_call("wait")
        worker = self._worker
        self.wait_all(each for each in self.requests.open_requests(worker) if not each.is_told)
        if self.watch is not None:
            self.watch.note_settled(worker)

    def wait_all(self, requests: Iterable[Request] | None = None) -> None:
        """Wait for these requests, else for all that are under way or failed, in that order.

        All are complete when the first failure is raised. A launch whose failure was raised before
        is left out.
        """
        check_host_call("wait")
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

    def close(self) -> None:
        """End all that is under way, at once and as an error would; else do nothing.

        Handles of launches raise LaunchEndedError from then on, and what comes next runs on a
        device that is built anew. Only for callers outside of the hub.
        """
        running = self._running
        if running is not None and running.hub.has_programs:
            try:
                running.hub.close()
            finally:
                if running.hub.has_ended:
                    self._end(running, _Closed("its context was closed"))

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
        running.effects.apply([(self.now_ps, number) for number in sorted(self._host_effects)])
        for mmu in self.mmus.values():
            mmu.flush()
        self._deliveries.clear()
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
        under_way = [each for each in self.requests.all_open() if not each.is_completed]
        launches = [each for each in under_way if each.programs is not None]
        is_about_all = not isinstance(error, Exception) or (
            failed is None and (isinstance(error, DeadlockError) or len(launches) == 1)
        )
        fix = "correct what failed and launch it again; its stores up to that time are visible"
        for request in under_way:
            if request.rings is not None:
                request.rings.explain(error)
                request.rings = None
            if request.programs is not None:
                found = f"programs that were ended at {self.now_ps} ps by {first_line(error)}"
                ended = LaunchEndedError(request.what, found, "programs that run to their end", fix)
                request.failures.append(ended)
                is_own = failed is not None and failed.number in request.programs
                request.is_told = is_own or is_about_all or request.worker is not None
            request.complete(self.now_ps)
            if not request.failures:
                self.requests.note_success(request)
            if request.is_told or not request.failures:
                self.requests.note_told(request)
                if self.watch is not None:
                    self.watch.note_wait(request)


def _follow(hub: Hub, driver: "ref[Driver]", request_id: int) -> None:
    """Tell the driver when a request is complete: the request's own program."""
    owner = driver()
    if owner is None:
        return
    request = owner.requests[request_id]
    end_task, what = request.end_task, request.what
    del owner, request  # a program that waits keeps what its variables refer to
    hub.wait(end_task, what)
    owner = driver()
    if owner is not None:
        owner._complete(owner.requests[request_id])


def _clock(driver: "ref[Driver]") -> Callable[[], int]:
    """Return what tells the time of a driver as long as there is one."""

    def now_ps() -> int:
        owner = driver()
        return 0 if owner is None else owner.now_ps

    return now_ps


def _close_hubs(hubs: Iterable[Hub]) -> None:
    """End what is under way on a device that nobody can use any more."""
    for hub in hubs:
        with suppress(EngineError):  # of another thread: ended with the process
            hub.close()
