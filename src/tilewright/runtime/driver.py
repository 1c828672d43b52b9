"""What carries out the requests of one context: a machine on a clock, its memories, its programs.

Host code takes no simulated time. A request becomes tasks at once; whoever waits for it lets time
pass until it is complete. A program of the hub that waits is suspended instead: nobody but the
outermost caller drives the clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from tilewright import language
from tilewright.device.build import Device, build_device
from tilewright.device.command_path import CommandPath, Delivery
from tilewright.device.mmu import Mmu
from tilewright.engine import AUTO, Auto, EngineKind, TaskGraph
from tilewright.engine.hub import Hub, Program
from tilewright.engine.message import first_line
from tilewright.errors import RequestError
from tilewright.language.launch import Launcher, quiet_values, rare_collections
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.page_table import PageTable
from tilewright.memory.sanitizer_space import QuarantinedSpace
from tilewright.memory.virtual import VirtualSpace
from tilewright.runtime.host_watch import HostWatch
from tilewright.runtime.launch_report import LaunchReport
from tilewright.runtime.memory import DeviceMemory
from tilewright.runtime.placement_pages import TensorPages
from tilewright.runtime.request import Completion, Request
from tilewright.runtime.tensor_book import book_of

__all__ = ("Driver", "Observer")


class Observer(Protocol):
    """Somebody who looks at launches and changes no time."""

    def launch_submitted(self, name: str, kernel: str, owners: Mapping[int, PeCoord]) -> None:
        """Owners are the engine's numbers of what runs on PEs."""

    def launch_completed(self, report: LaunchReport) -> None: ...

    @property
    def commands(self) -> Any:
        """Watches what programs issue (`language.Program`); None if nobody does."""


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
        with rare_collections():
            self.device: Device = build_device(machine, choice)
        self.page_bytes = machine.spec.pe.mmu.page_bytes
        self.memory = DeviceMemory(self.device)
        self.watch = HostWatch(lambda: self.now_ps) if sanitize else None
        self.space = (QuarantinedSpace if sanitize else VirtualSpace)(page_bytes=self.page_bytes)
        self.path = CommandPath(self.device)
        self.effects = self.memory.build_effect_log() if self.watch is None else self.watch.effects
        self.hub = Hub(self.device.engine, self.effects.apply)
        self.launcher = Launcher(
            self.device,
            self.memory.memories,
            self.memory.locate,
            self.mmu,
            vars(language),
            self.path.pe,
            self.memory.tcm_used_bytes,
            lambda: book_of(self.tensors.values()),
        )
        self.tensors: dict[int, TensorPages] = {}  # that have memory, by where they start
        self.requests: list[Request] = []
        self._open: dict[int | None, dict[int, Request]] = {}  # by worker, those under way
        self.reports: list[LaunchReport] = []  # of launches that are over, in that order
        self.observer: Observer | None = None
        self._mmus: dict[PeCoord, Mmu] = {}
        self._end_reason: str | None = None

    @property
    def now_ps(self) -> int:
        return self.device.engine.now_ps

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

    def _new_request(self, what: str) -> Request:
        self.check_usable(what)
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
        request.completed_ps = self.now_ps
        del self._open[request.worker][request.request_id]
        self.device.engine.raise_signal(request.signal)
        for listener in request.listeners:
            listener()

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
        """Until the request is complete; a failure is raised."""
        if not request.is_completed:
            if self.hub.is_inside:
                self.hub.wait_signal(request.signal, 1)
            else:
                self.drive(until=request.program)
        if self.watch is not None:
            self.watch.note_wait(request)
        return request.check()

    @property
    def _worker(self) -> int | None:
        return self.hub.running.number if self.hub.is_inside else None

    def settle(self) -> None:
        """Wait for all that the caller has submitted; other workers' requests are their affair."""
        worker = self._worker
        self.wait_all(self._open.get(worker, {}).values())
        if self.watch is not None:
            self.watch.note_settled(worker)

    def wait_all(self, requests: Iterable[Request] | None = None) -> None:
        """For all that were ever submitted, in that order; the first failure is raised at the end.

        All are complete by then.
        """
        waited = list(self.requests if requests is None else requests)
        if waited and not waited[-1].is_completed and not self.hub.is_inside:
            self.drive(until=waited[-1].program)  # mostly the last one ends last: one run for all
        failed = []
        for request in waited:
            try:
                self.wait(request)
            except RequestError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def drive(self, until: Program) -> None:
        """Let time pass until a program of the hub has ended; for callers outside of the hub."""
        self.check_usable("wait")
        try:
            with quiet_values():
                self.hub.run(until)
        except BaseException as error:
            self._end_reason = first_line(error)
            raise

    def check_usable(self, what: str) -> None:
        """After an error in a kernel the device has work that nobody finishes."""
        if self._end_reason is not None:
            found = f"a device whose run ended with {self._end_reason}"
            fix = "make a new context"
            raise RequestError(what, found, "one that can go on", fix)
