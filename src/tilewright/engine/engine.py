"""The one public simulator object, over either core: checks what goes in, names what went wrong."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.engine.core import (
    LAST_PS,
    NO_GATE,
    NO_LIMIT,
    NO_ROUTE,
    NO_WAKE,
    UNBOUNDED,
)
from tilewright.engine.deadlock import WaitingProgram, deadlock_error
from tilewright.engine.dram.spec import (
    BankedSpec,
    SimpleSpec,
    check_packets,
)
from tilewright.engine.fault import (
    HARMLESS,
    CoreFault,
    error_of_fault,
    error_of_violation,
    reentered_error,
)
from tilewright.engine.graph import TaskGraph, check_not_empty, no_graph_error
from tilewright.engine.issuer import Issuer, IssuerSpec
from tilewright.engine.layout import Layout
from tilewright.engine.reference.core import Core
from tilewright.engine.reference.graph import Graph
from tilewright.engine.service import RunGuard, checked_service
from tilewright.engine.spec import (
    AUTO,
    Arbitration,
    Auto,
    EngineKind,
    EngineSpec,
    ServerSpec,
    check_integer,
    checked_ids,
    resolve_engine,
)
from tilewright.engine.statistics import (
    ChannelCounters,
    MemoryRecord,
    RouteStatistics,
    ServerStatistics,
    Statistics,
    TraceRecord,
)
from tilewright.errors import DeadlockError, EngineError, TilewrightError
from tilewright.limits import MAX_PACKETS
from tilewright.native import native_built, native_core
from tilewright.units import MAX_PS, flit_ps

MAX_OWNER = 2**22

Result = TypeVar("Result")


class Engine:
    """Servers, routes and signals, then tasks, then time.

    After an error in ``advance`` the engine is stopped: only its statistics can still be read.
    """

    def __init__(self, core: Core, kind: EngineKind, spec: EngineSpec) -> None:
        self.kind = kind
        self.spec = spec
        self.core = core
        self._layout = Layout()
        self._checked_events = 0  # when the conservation rules were last checked
        self.guard = RunGuard()  # knows the servers in Python, but not this engine: no cycle
        self._offsets: tuple[Graph | None, list[int]] = (None, [])

    @property
    def now_ps(self) -> int:
        return self.core.now_ps

    # -- building --------------------------------------------------------------------------------

    def add_server(self, spec: ServerSpec) -> int:
        """Returns its number. Names are unique."""
        self._check_usable()
        self._layout.check_server(spec, self.spec)
        rate, buffer_flits = spec.bytes_per_us, spec.buffer_flits
        time_ps = 0 if rate is None else flit_ps(flit_bytes=self.spec.flit_bytes, bytes_per_us=rate)
        service = None
        if spec.service is not None:
            service = checked_service(spec, time_ps, self.guard)
            self.guard.is_plain = False
        self._layout.note_server(spec)
        return self.core.add_server(
            time_ps,
            spec.latency_ps,
            UNBOUNDED if buffer_flits is None else buffer_flits,
            spec.credit_ps,
            spec.arbitration is Arbitration.ROUND_ROBIN,
            spec.takes_whole_packets,
            service,
        )

    def add_memory(self, name: str, spec: BankedSpec | SimpleSpec, capacity_bytes: int) -> int:
        """Returns its number: a server at which routes end. ``docs/memory.md`` has its law.

        A packet of an exchange is an access: its address is the task's ``tag`` and what the
        packets before it carry. It waits in front until the memory's queues have room.
        """
        self._check_usable()
        check_integer("memory", "capacity_bytes", capacity_bytes, 1, MAX_PS)
        server = ServerSpec(name)
        self._layout.check_server(server, self.spec)
        if isinstance(spec, BankedSpec):
            check_packets(spec, self.spec.packet_bytes)
        elif not isinstance(spec, SimpleSpec):
            fix = "describe the memory by one of them"
            raise EngineError(f"memory {name!r}", repr(spec), "a BankedSpec or SimpleSpec", fix)
        self._layout.note_server(server, is_memory=True)
        if isinstance(spec, BankedSpec):
            return self.core.add_banked_memory(spec, capacity_bytes)
        return self.core.add_simple_memory(spec, capacity_bytes)

    def add_route(self, servers: Sequence[int | str], channels: int | Sequence[int] = 0) -> int:
        """Returns its number. ``channels`` are those behind each server; one number is for all."""
        self._check_usable()
        numbers, each = self._layout.resolve_route(servers, channels)
        self._layout.note_route(numbers)
        try:
            return self.core.add_route(numbers, each)
        except CoreFault as fault:
            raise self._translated(fault) from None

    def add_signal(self, name: str) -> int:
        """Returns its number. Names are unique."""
        self._check_usable()
        self._layout.check_signal_name(name)
        signal = self.core.add_signal()
        self._layout.note_signal(name, signal)
        return signal

    def remove_signal(self, signal: int) -> None:
        """Give up a signal; a later one may get its number, and begins at 0.

        No task that has not ended may wait for the signal or raise it, and no graph that names it
        may be submitted again. Raises EngineError if a task waits.
        """
        self._check_usable()
        self._layout.check_signal(signal)
        try:
            self.core.remove_signal(signal)
        except CoreFault as fault:
            raise self._translated(fault) from None
        self._layout.forget_signal(signal)

    def add_gate(self, packets: int) -> int:
        """Returns its number. It lets so many packets of its round trips be under way at once."""
        self._check_usable()
        check_integer("gate", "packets", packets, 1, MAX_PACKETS)
        self._layout.num_gates += 1
        return self.core.add_gate(packets)

    def add_round_trip(
        self,
        out: int,
        back: int,
        *,
        gate: int | None = None,
        writes: bool = False,
        is_home: bool = False,
        inside: int | None = None,
    ) -> int:
        """Returns its number: the routes that the packets of an exchange and their answers take.

        A read sends requests of one flit and gets data back; a write sends data and gets answers
        of one flit. Data that are read cross the route ``inside``, if there is one, when their
        request has come; they are served behind it, and set out. One that ``is_home`` meets the
        packets of others seldom: that changes no result, but the native core then simulates long
        stretches of it at a time.
        """
        self._check_usable()
        self._layout.check_round_trip(out, back, gate, inside, writes, is_home)
        number = NO_GATE if gate is None else gate
        crossed = NO_ROUTE if inside is None else inside
        return self.core.add_round_trip(out, back, number, writes, is_home, crossed)

    def add_issuer(self, spec: IssuerSpec) -> Issuer:
        """A processor that issues commands in order; its routes and round trips are there."""
        self._check_usable()
        self._layout.check_issuer(spec)
        return self.core.add_issuer(spec)

    # -- tasks -----------------------------------------------------------------------------------

    def prepare(self, graph: TaskGraph) -> None:
        """Check and compile a graph ahead of its first submission, which does it otherwise."""
        self._check_usable()
        try:
            graph.compiled_for(self.core)
        except (CoreFault, AttributeError) as error:
            raise self.error_of_submit(error, graph) from None

    def submit(self, graph: TaskGraph, *, owner: int = 0, after: Sequence[int] = ()) -> int:
        """Hand the graph to the core; returns the id of its first task.

        The owner numbers its tasks apart from all others, so that ids do not depend on the order
        in which owners submit. Tasks that wait for none of the graph wait for those of ``after``.
        """
        return self._hand_over(self.core.submit, graph, owner, after)

    def submit_watched(self, graph: TaskGraph, *, owner: int = 0, after: Sequence[int] = ()) -> int:
        """Submit and watch the graph's last task; returns the id of that."""
        check_not_empty(graph)
        return self._hand_over(self.core.submit_watched, graph, owner, after)

    def submit_piece(self, issuer: Issuer, *, owner: int) -> None:
        """Hand over what an issuer has issued since the last time."""
        if self.guard.stop_reason is not None:
            raise self._refusal()
        check_integer("submit_piece", "owner", owner, 0, MAX_OWNER)
        try:
            piece = issuer.take_piece()
            if piece is not None:
                issuer.note_first_id(self.core.submit(piece, owner, ()))
        except CoreFault as fault:
            raise self._translated(fault) from None

    def _hand_over(
        self,
        submit: Callable[[Graph, int, tuple[int, ...]], int],
        graph: TaskGraph,
        owner: int,
        after: Sequence[int],
    ) -> int:
        if self.guard.stop_reason is not None:
            raise self._refusal()
        if type(owner) is not int or not 0 <= owner <= MAX_OWNER:
            check_integer("submit", "owner", owner, 0, MAX_OWNER)
        earlier = checked_ids(after) if after else ()
        try:
            return submit(graph.compiled_for(self.core), owner, earlier)
        except (CoreFault, AttributeError) as error:
            raise self.error_of_submit(error, graph) from None

    def end_owner(self, owner: int) -> None:
        """State that an owner submits no more, so that nothing is kept of it.

        Its tasks go on. Once they have ended, every id of the owner counts as complete. An owner
        that submits again gets new ids.
        """
        self._check_outside()
        check_integer("end_owner", "owner", owner, 0, MAX_OWNER)
        self.core.end_owner(owner)

    def compiled(self, graph: TaskGraph) -> Graph:
        """For a hub: the core's form of a graph that has a last task to wait for."""
        check_not_empty(graph)
        try:
            return graph.compiled_for(self.core)
        except CoreFault as fault:
            raise self.error_of_submit(fault, graph) from None

    def error_of_submit(self, error: BaseException, graph: object) -> BaseException:
        """What a user reads of an error in handing over a graph."""
        if not isinstance(graph, TaskGraph):
            return no_graph_error(graph)
        if not isinstance(error, CoreFault):
            return error
        return graph.row_error(error) or self._translated(error)

    def task_id(self, graph: TaskGraph, first_id: int, index: int) -> int:
        """The id of a graph's task, from what ``submit`` returned; constant time in a loop."""
        compiled = graph.compiled_for(self.core)
        if self._offsets[0] is not compiled:
            self._offsets = compiled, compiled.offsets
        check_integer("task_id", "index", index, 0, len(graph) - 1)
        return first_id + self._offsets[1][index]

    def watch(self, task_id: int) -> bool:
        """Let ``advance`` report the task's end; False if it is complete already."""
        if self.guard.stop_reason is not None:
            raise self._refusal()
        if type(task_id) is not int or not 0 <= task_id <= MAX_PS:
            check_integer("watch", "task_id", task_id, 0, MAX_PS)
        try:
            return self.core.watch(task_id)
        except CoreFault as fault:
            raise self._translated(fault) from None

    def raise_signal(self, signal: int, amount: int = 1) -> None:
        """Add to a signal; tasks that waited for the value start at this instant."""
        self._check_usable()
        self._layout.check_signal(signal)
        check_integer("raise_signal", "amount", amount, 1, MAX_PS)
        try:
            self.core.raise_signal(signal, amount)
        except CoreFault as fault:
            raise self._translated(fault) from None

    def signal_value(self, signal: int) -> int:
        self._layout.check_signal(signal)
        return self.core.signal_value(signal)

    # -- time ------------------------------------------------------------------------------------

    def advance(self, until_ps: int | None = None) -> list[int]:
        """Run until watched tasks end and return their ids in event order.

        Empty when nothing is left, or at ``until_ps``. Nothing left while tasks wait is a
        DeadlockError; with a limit it is not, since the caller may yet raise a signal.
        """
        if until_ps is not None:
            check_integer("advance", "until_ps", until_ps, 0, LAST_PS)
            if until_ps < self.now_ps:
                found, expected = f"until_ps = {until_ps}", f"a time from now on, {self.now_ps} ps"
                raise EngineError("advance", found, expected, "time never goes back")
        wakes = self._run_core(self.core.advance, NO_LIMIT if until_ps is None else until_ps)
        if not wakes:
            self.settle(limited=until_ps is not None)
        return wakes

    def next_wake(self) -> int:
        """For a hub: the next wake-up as a core tells it; NO_WAKE if all is done."""
        wake = self._run_core(self.core.next_wake)
        if wake == NO_WAKE:
            self.settle()
        return wake

    def run(self) -> None:
        """Run until nothing is left, and check the conservation rules."""
        while self.advance():
            pass
        self.check_if_drained()

    def deadlock_error(self, programs: Sequence[WaitingProgram] = ()) -> DeadlockError:
        """Who waits now, and the cycle; with the programs that wait for tasks."""
        layout = self._layout
        return deadlock_error(self.core, programs, layout.servers, layout.signals)

    # -- results ---------------------------------------------------------------------------------

    def take_effects(self) -> list[tuple[int, int]]:
        """The (time, effect) pairs since the last call, in event order."""
        self._check_outside()
        return self.core.take_effects()

    def take_effect_columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The same as two columns: times, effects."""
        self._check_outside()
        times, effects = self.core.take_effect_columns()
        return np.asarray(times, np.int64), np.asarray(effects, np.int64)

    def set_trace(self, on: bool, owners: range | None = None) -> None:
        """Start a new trace, of all packets or of some neighbouring owners', or end tracing."""
        self._check_usable()
        if type(on) is not bool:
            raise EngineError("set_trace", repr(on), "True or False", "pass a bool")
        traced = range(MAX_OWNER + 1) if owners is None else owners
        if not isinstance(traced, range) or not traced or traced.step != 1:
            fix = "pass range(first, last + 1)"
            raise EngineError("set_trace", f"owners = {owners!r}", "neighbouring owners", fix)
        self.core.set_trace(on, traced[0], traced[-1])

    def take_trace(self) -> list[TraceRecord]:
        """What servers took since the last call, in event order."""
        self._check_outside()
        return [TraceRecord(*row) for row in self.core.take_trace()]

    def take_trace_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Both traces as arrays, a row for each record: a fifth of the cost, for many of them."""
        self._check_outside()
        rows, memory_rows = self.core.take_trace(), self.core.take_memory_trace()
        return np.array(rows, np.int64).reshape(-1, 5), np.array(memory_rows, np.int64).reshape(
            -1, 5
        )

    def take_memory_trace(self) -> list[MemoryRecord]:
        """What memories decided since the last call, in event order; traced with the rest."""
        self._check_outside()
        return [MemoryRecord(*row) for row in self.core.take_memory_trace()]

    def memory_counters(self, server: int) -> tuple[ChannelCounters, ...]:
        """Of each pseudo-channel; in mid-run they contain commands that lie ahead."""
        self._check_outside()
        self._layout.check_memory(server)
        return tuple(ChannelCounters(*row) for row in self.core.memory_counters(server))

    def memory_openings(self, server: int) -> tuple[tuple[int, ...], ...]:
        """Return how many rows each bank has opened for a burst, by pseudo-channel.

        Empty for pseudo-channels without banks; in mid-run it contains commands that lie ahead.
        """
        self._check_outside()
        self._layout.check_memory(server)
        return tuple(tuple(row) for row in self.core.memory_openings(server))

    def busy_ps(self) -> list[int]:
        """Of each server, as ``statistics`` has it: a tenth of the cost, for who looks often."""
        self._check_outside()
        return self.core.busy_ps()

    def statistics(self) -> Statistics:
        """All counters now. When nothing is left to do, the conservation rules are checked."""
        self._check_outside()
        core = self.core
        if self.guard.stop_reason is None and core.is_drained():
            self.check_rules()
        names = [server.name for server in self._layout.servers]
        servers = [ServerStatistics(name, *core.server_counters(n)) for n, name in enumerate(names)]
        routes = [RouteStatistics(*core.route_counters(n)) for n in range(self._layout.num_routes)]
        return Statistics(core.now_ps, core.events, tuple(servers), tuple(routes))

    # -- checks ----------------------------------------------------------------------------------

    def _run_core(self, call: Callable[..., Result], *args: int) -> Result:
        """Let the core run; an error in it stops the engine."""
        if self.guard.stop_reason is not None:
            raise self._refusal()
        try:
            if self.guard.is_plain:
                return call(*args)
            self._check_outside()
            with self.guard:
                return call(*args)
        except CoreFault as fault:
            raise self._translated(fault) from None
        except BaseException as error:
            self.guard.stop(error)
            raise

    def error_of_run(self, error: BaseException) -> BaseException:
        """What a user reads of an error inside the core, which stops the engine."""
        if isinstance(error, CoreFault):
            return self._translated(error)
        self.guard.stop(error)
        return error

    def settle(self, *, limited: bool = False) -> None:
        """No wake-ups: either all is done, or somebody waits in vain."""
        size = len(self._layout.servers) + self._layout.num_hops  # what a check costs
        try:
            if not self.core.is_drained():
                if not limited:
                    raise self.deadlock_error()
            elif self.core.events - self._checked_events >= size:
                self.check_rules()  # so small runs on a big machine do not pay for it each time
        except TilewrightError as error:
            self.guard.stop(error)
            raise

    def check_if_drained(self) -> None:
        """The conservation rules, unless work is left or they have just been checked."""
        if self.core.is_drained() and self.core.events != self._checked_events:
            self.check_rules()

    def check_rules(self) -> None:
        """The conservation rules of a drained engine; ``run`` checks them itself."""
        self._checked_events = self.core.events
        violation = self.core.first_violation()
        if violation is not None:
            raise error_of_violation(violation, self._layout.names, self.now_ps)

    def _translated(self, fault: CoreFault) -> Exception:
        """The error that a user reads; a fault that leaves work half done stops the engine."""
        error = error_of_fault(fault, self._layout.names, self.guard.serving)
        if fault.kind not in HARMLESS:
            self.guard.stop(error)
        return error

    def _refusal(self) -> EngineError:
        found = f"one that stopped at {self.now_ps} ps: {self.guard.stop_reason}"
        return EngineError("engine", found, "one that can go on", "build a new engine")

    def _check_usable(self) -> None:
        if self.guard.stop_reason is not None:
            raise self._refusal()
        self._check_outside()

    def _check_outside(self) -> None:
        if self.guard.serving is not None:
            raise reentered_error(self.guard.serving)


def build_engine(
    choice: EngineKind | Auto = AUTO,
    spec: EngineSpec = EngineSpec(),  # noqa: B008  # frozen
) -> Engine:
    """An engine without servers; ``engine.kind`` says which one it is."""
    kind = resolve_engine(choice, native_built=native_built())
    if not isinstance(spec, EngineSpec):
        raise EngineError("engine", f"the spec {spec!r}", "an EngineSpec", "build one")
    make = Core if kind is EngineKind.REFERENCE else native_core().Core
    return Engine(make(spec.flit_bytes, spec.packet_flits, spec.arrival_salt), kind, spec)
