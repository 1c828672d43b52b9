"""Programs for an engine as plain data, and all that a run of one shows to its caller."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    Hub,
    MemoryRecord,
    PacketView,
    ServerSpec,
    Statistics,
    TaskGraph,
    TraceRecord,
    build_engine,
)
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec
from tilewright.engine.statistics import ChannelCounters
from tilewright.errors import DeadlockError, TilewrightError

__all__ = (
    "FLIT_BYTES",
    "NO_EFFECT",
    "Advance",
    "GraphPlan",
    "MemorySpec",
    "Outcome",
    "Perform",
    "Program",
    "RaiseSignal",
    "ServerPlan",
    "ServicePlan",
    "SetTrace",
    "Step",
    "Submit",
    "TaskPlan",
    "TripPlan",
    "Watch",
    "rate_of",
    "run_program",
)

FLIT_BYTES = 8
NO_EFFECT = -1  # what a task without an effect has in a graph
ENOUGH = 10**6  # raises any signal beyond all thresholds
SIMPLE_MEMORY_BYTES = 1024


def rate_of(flit_ps: int, flit_bytes: int) -> int:
    """The rate whose flit time is ``flit_ps``."""
    return -(-flit_bytes * 10**6 // flit_ps)


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A server in Python: the time of the wire, and more that depends on packet and history."""

    extra_ps: tuple[int, ...]
    latencies_ps: tuple[int, ...]
    fails_at: int | None = None  # the call that raises
    lies_at: int | None = None  # the call that returns nonsense


class PlannedService:
    """The plan at work; it remembers how often it was called."""

    def __init__(self, plan: ServicePlan, flit_ps: int) -> None:
        self._plan = plan
        self._flit_ps = flit_ps
        self._num_calls = 0

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        plan, call = self._plan, self._num_calls
        self._num_calls += 1
        if call == plan.fails_at:
            raise ValueError(f"call {call} at {now_ps}")
        if call == plan.lies_at:
            return -1, packet.num_bytes
        place = packet.tag + packet.position + packet.offset_bytes
        extra_ps = plan.extra_ps[(call + place) % len(plan.extra_ps)]
        return packet.num_flits * self._flit_ps + extra_ps, plan.latencies_ps[
            call % len(plan.latencies_ps)
        ]


MemorySpec = BankedSpec | SimpleSpec


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """A server without its name; ``flit_ps`` is None for one without a wire.

    With ``memory`` it is a memory, at which routes end, and nothing else counts.
    """

    flit_ps: int | None = 1
    latency_ps: int = 0
    buffer_flits: int | None = None
    credit_ps: int = 0
    round_robin: bool = False
    reassemble: bool = False
    service: ServicePlan | None = None
    memory: MemorySpec | None = None

    @property
    def takes_packets(self) -> bool:
        """Whether a packet can cross it to the next server."""
        return self.memory is None and (self.flit_ps is not None or self.service is not None)

    @property
    def capacity_bytes(self) -> int:
        """Size of the memory."""
        if isinstance(self.memory, BankedSpec):
            return self.memory.capacity_bytes
        return SIMPLE_MEMORY_BYTES

    def add_to(self, engine: Engine, name: str) -> None:
        """Add the server or the memory to an engine."""
        if self.memory is None:
            engine.add_server(self.spec(name))
        else:
            engine.add_memory(name, self.memory, self.capacity_bytes)

    def spec(self, name: str) -> ServerSpec:
        flit_ps = self.flit_ps
        return ServerSpec(
            name,
            bytes_per_us=None if flit_ps is None else rate_of(flit_ps, FLIT_BYTES),
            latency_ps=self.latency_ps,
            buffer_flits=self.buffer_flits,
            credit_ps=self.credit_ps,
            arbitration=Arbitration.ROUND_ROBIN if self.round_robin else Arbitration.FIFO,
            reassemble=self.reassemble,
            service=None if self.service is None else PlannedService(self.service, flit_ps or 0),
        )


Hop = tuple[int, int]  # a server and the channel behind it
Pair = tuple[int, int]  # a signal, and a value or an amount


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A row of a graph; without a route or a round trip it is a timer.

    ``earlier`` is a submission and a task of it, counted round those there are when the graph is
    first submitted; then the row stands for that task.
    """

    route: int | None = None
    round_trip: int | None = None
    num_bytes: int | None = None
    hold_ps: int | None = None
    delay_ps: int = 0
    after: tuple[int, ...] = ()
    waits: tuple[Pair, ...] = ()
    raises: tuple[Pair, ...] = ()
    effect: int = NO_EFFECT
    served_effect: int = NO_EFFECT
    tag: int = 0
    segment_bytes: int | None = None
    stride_bytes: int = 0
    earlier: tuple[int, int] | None = None

    def add_to(self, graph: TaskGraph) -> None:
        after, waits, raises = self.after, self.waits, self.raises
        delay_ps, effect, tag = self.delay_ps, self.effect, self.tag
        if self.round_trip is not None and self.num_bytes is not None:
            graph.exchange(
                self.round_trip, self.num_bytes, delay_ps=delay_ps, after=after, waits=waits,
                raises=raises, effect=effect, served_effect=self.served_effect, tag=tag,
                segment_bytes=self.segment_bytes, stride_bytes=self.stride_bytes,
            )  # fmt: skip
        elif self.route is None:
            graph.timer(delay_ps, after=after, waits=waits, raises=raises, effect=effect)
        elif self.num_bytes is not None:
            graph.transfer(
                self.route, num_bytes=self.num_bytes, delay_ps=delay_ps, after=after, waits=waits,
                raises=raises, effect=effect, tag=tag,
            )  # fmt: skip
        elif self.hold_ps is not None:
            graph.hold(
                self.route, hold_ps=self.hold_ps, delay_ps=delay_ps, after=after, waits=waits,
                raises=raises, effect=effect, tag=tag,
            )  # fmt: skip


GraphPlan = tuple[TaskPlan, ...]


@dataclass(frozen=True, slots=True)
class TripPlan:
    """Two routes, the gate in front of the first, and what is crossed between them."""

    out: int
    back: int
    gate: int | None = None
    writes: bool = False
    is_home: bool = False
    inside: int | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit a graph after tasks of earlier submissions, each (submission, task)."""

    graph: int
    owner: int
    after: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """Ask for the end of a task of an earlier submission."""

    submission: int
    task: int


@dataclass(frozen=True, slots=True)
class RaiseSignal:
    """Raise from Python."""

    signal: int
    amount: int


@dataclass(frozen=True, slots=True)
class Advance:
    """Until something is due, for so long at most; None is without limit."""

    for_ps: int | None = None


@dataclass(frozen=True, slots=True)
class SetTrace:
    """Begin a new trace, or end tracing."""

    is_on: bool


@dataclass(frozen=True, slots=True)
class Perform:
    """Submit a graph and wait for its last task; only for a program of a hub."""

    graph: int


Step = Submit | Watch | RaiseSignal | Advance | SetTrace | Perform


@dataclass(frozen=True, slots=True)
class Program:
    """Servers and routes, graphs, and what the caller does with them one after the other."""

    servers: tuple[ServerPlan, ...]
    routes: tuple[tuple[Hop, ...], ...]
    graphs: tuple[GraphPlan, ...]
    steps: tuple[Step, ...]
    num_signals: int = 0
    packet_flits: int = 2
    gates: tuple[int, ...] = ()  # packets that each lets be under way
    round_trips: tuple["TripPlan", ...] = ()
    is_traced: bool = True
    raises_all: bool = True  # before the end, so that no task waits for a signal in vain
    hub_steps: tuple[tuple["Step", ...], ...] = ()  # of each program of a hub, after the steps

    def plan_of(self, submit: Submit) -> GraphPlan:
        return self.graphs[submit.graph]

    @property
    def submits(self) -> tuple[Submit, ...]:
        return tuple(step for step in self.steps if isinstance(step, Submit))

    def engine(self, kind: EngineKind, salt: int = 0) -> Engine:
        engine = build_engine(kind, EngineSpec(FLIT_BYTES, self.packet_flits, salt))
        for index, server in enumerate(self.servers):
            server.add_to(engine, f"s{index}")
        for route in self.routes:
            servers, channels = zip(*route, strict=True)
            engine.add_route(servers, channels)
        for signal in range(self.num_signals):
            engine.add_signal(f"signal{signal}")
        for packets in self.gates:
            engine.add_gate(packets)
        for trip in self.round_trips:
            engine.add_round_trip(
                trip.out,
                trip.back,
                gate=trip.gate,
                writes=trip.writes,
                is_home=trip.is_home,
                inside=trip.inside,
            )
        return engine


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a caller can see. ``seen`` is step by step, with the time after it."""

    seen: tuple[tuple[object, ...], ...]
    effects: tuple[tuple[int, int], ...]
    trace: tuple[TraceRecord, ...]
    statistics: Statistics
    error: str | None
    first_ids: tuple[int, ...]
    is_deadlock: bool
    cycle: tuple[str, ...] = ()
    memory_trace: tuple[MemoryRecord, ...] = ()
    memory_counters: tuple[tuple[ChannelCounters, ...], ...] = ()


@dataclass(slots=True)
class _Driver:
    """Plays the steps of a program on one engine."""

    program: Program
    engine: Engine
    graphs: dict[int, TaskGraph] = field(default_factory=dict)
    seen: list[tuple[object, ...]] = field(default_factory=list)
    first_ids: list[int] = field(default_factory=list)
    submitted: list[TaskGraph] = field(default_factory=list)

    def play(self) -> None:
        for step in self.program.steps:
            self.take(step)
        if self.program.hub_steps:
            self.play_on_hub()
        if self.program.raises_all:
            for signal in range(self.program.num_signals):
                self.take(RaiseSignal(signal, ENOUGH))
        while self.advance(None):
            pass

    def play_on_hub(self) -> None:
        """Let programs wait for what they perform and watch."""
        hub = Hub(self.engine)

        def body(number: int, steps: tuple[Step, ...]) -> Callable[[], None]:
            def run() -> None:
                for step in steps:
                    self.take_on_hub(hub, step)
                    self.seen.append((number, hub.now_ps))

            return run

        for number, steps in enumerate(self.program.hub_steps):
            hub.spawn(body(number, steps))
        hub.run()

    def take_on_hub(self, hub: Hub, step: Step) -> None:
        match step:
            case Perform(graph):
                hub.perform(self.graph(graph))
            case Watch(submission, task) if self.first_ids:
                number = submission % len(self.first_ids)
                hub.wait(self.task_id(number, task % len(self.submitted[number])))
            case Advance(for_ps):
                hub.sleep(for_ps or 0)
            case RaiseSignal(signal, amount):
                self.engine.raise_signal(signal, amount)

    def take(self, step: Step) -> None:
        match step:
            case Submit(graph, owner, after):
                ids = [self.task_id(*place) for place in after]
                tasks = self.graph(graph)
                first_id = self.engine.submit(tasks, owner=owner, after=ids)
                self.first_ids.append(first_id)
                self.submitted.append(tasks)
                self.seen.append(("submit", first_id))
                self.seen.append(("statistics", self.engine.statistics()))
            case Watch(submission, task):
                is_open = self.engine.watch(self.task_id(submission, task))
                self.seen.append(("watch", is_open))
            case RaiseSignal(signal, amount):
                self.engine.raise_signal(signal, amount)
                self.seen.append(("signal", self.engine.signal_value(signal)))
            case Advance(for_ps):
                self.advance(None if for_ps is None else self.engine.now_ps + for_ps)
                self.seen.append(("statistics", self.engine.statistics(), self.memory_counters()))
            case SetTrace(is_on):
                self.seen.append((*self.engine.take_trace(), *self.engine.take_memory_trace()))
                self.engine.set_trace(is_on)

    def graph(self, number: int) -> TaskGraph:
        """Built when it is first submitted, since it may stand on what was submitted before."""
        if number not in self.graphs:
            self.graphs[number] = graph = TaskGraph()
            for task in self.program.graphs[number]:
                if task.earlier is None or not self.submitted:
                    task.add_to(graph)
                else:
                    submission = task.earlier[0] % len(self.submitted)
                    place = task.earlier[1] % len(self.submitted[submission])
                    graph.earlier(self.task_id(submission, place))
        return self.graphs[number]

    def advance(self, until_ps: int | None) -> bool:
        wakes = self.engine.advance(until_ps)
        self.seen.append(("advance", self.engine.now_ps, *wakes))
        return bool(wakes)

    def memory_counters(self) -> tuple[tuple[ChannelCounters, ...], ...]:
        servers = enumerate(self.program.servers)
        memories = [index for index, server in servers if server.memory is not None]
        return tuple(self.engine.memory_counters(memory) for memory in memories)

    def task_id(self, submission: int, task: int) -> int:
        return self.engine.task_id(self.submitted[submission], self.first_ids[submission], task)


def run_program(program: Program, kind: EngineKind, *, salt: int = 0) -> Outcome:
    """Build, play, and gather what there is to see, also after an error."""
    engine = program.engine(kind, salt)
    driver = _Driver(program, engine)
    engine.set_trace(program.is_traced)
    failure: TilewrightError | None = None
    try:
        driver.play()
    except TilewrightError as error:
        failure = error
    return Outcome(
        seen=tuple(driver.seen),
        effects=tuple(engine.take_effects()),
        trace=tuple(engine.take_trace()),
        statistics=engine.statistics(),
        error=None if failure is None else f"{type(failure).__name__}: {failure}",
        first_ids=tuple(driver.first_ids),
        is_deadlock=isinstance(failure, DeadlockError),
        cycle=failure.cycle if isinstance(failure, DeadlockError) else (),
        memory_trace=tuple(engine.take_memory_trace()),
        memory_counters=driver.memory_counters(),
    )
