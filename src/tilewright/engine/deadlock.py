"""Who waits for what when events have run out, and the cycle among them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tilewright.engine.core import WaitingPacket, WaitingTask
from tilewright.engine.fault import id_text
from tilewright.engine.reference.core import Core
from tilewright.engine.spec import Arbitration, ServerSpec
from tilewright.errors import DeadlockError, LimitError

MAX_LINES = 20
MAX_NAMED = 3
MAX_PROGRAMS = 4  # in the error of a run beyond a limit

PROGRAM, TASK, PACKET = 0, 1, 2
Node = tuple[int, int]  # kind, then the program's number or the id


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a program waits: for something that another program would have to do.

    ``tell`` and ``programs`` are called when a report is made, so they know what holds then.
    """

    thing: str  # "message 0 from 'E'"
    line: str  # of the source, where the program waits
    tell: Callable[[], str]  # the whole of it in words
    programs: Callable[[], Iterable[int]]  # the numbers of those that could do it


What = str | Reason | Callable[[], str]
"""That a program waits for, in words; those of a function are asked for when a report is made."""


class WaitingProgram(NamedTuple):
    """A program that has not been resumed."""

    number: int
    name: str
    task_id: int
    what: str
    thing: str = ""  # as in its Reason, if it has one
    line: str = ""
    programs: tuple[int, ...] = ()


def waiting_program(number: int, name: str, task_id: int, what: What) -> WaitingProgram:
    if not isinstance(what, Reason):
        words = what if isinstance(what, str) else what()
        return WaitingProgram(number, name, task_id, words)
    programs = tuple(sorted(what.programs()))
    return WaitingProgram(number, name, task_id, what.tell(), what.thing, what.line, programs)


class DeadlockReport(NamedTuple):
    """A line per waiter; the cycle closed, or empty; and both as a text of limited length."""

    waiters: tuple[str, ...]
    cycle: tuple[str, ...]
    text: str


def deadlock_error(
    core: Core,
    programs: Sequence[WaitingProgram],
    servers: Sequence[ServerSpec],
    signals: Sequence[str],
) -> DeadlockError:
    """Return the error of a core that has no events left: who waits now, and the cycle."""
    tasks = [
        WaitingTask(task_id, left, tuple(afters), tuple(waits), tuple(raises))
        for task_id, left, afters, waits, raises in core.waiting_tasks()
    ]
    packets = [WaitingPacket(*row) for row in core.waiting_packets()]
    report = report_deadlock(tasks, packets, programs, servers, signals)
    fix = "raise the signal or end the task that the first line names"
    fix = "break the cycle" if report.cycle else fix
    where, found = f"engine at {core.now_ps} ps", f"no events left and {report.text}"
    return DeadlockError(where, found, "all work to end", fix, report.waiters, report.cycle)


def report_deadlock(
    tasks: Sequence[WaitingTask],
    packets: Sequence[WaitingPacket],
    programs: Sequence[WaitingProgram],
    servers: Sequence[ServerSpec],
    signals: Sequence[str],
) -> DeadlockReport:
    """Pure; the same state gives the same report, whatever the order of its parts."""
    state = _State(tasks, packets, programs, servers, signals)
    waiters = tuple(state.line(node) for node in state.nodes())
    nodes = find_cycle(state.nodes(), state.waits_for)
    cycle = tuple(state.label(node) for node in nodes)
    return DeadlockReport(waiters, cycle, _text(waiters, state.cycle_text(nodes)))


def find_cycle(
    nodes: Iterable[Node], targets: Callable[[Node], Iterable[Node]]
) -> tuple[Node, ...]:
    """The first cycle that a depth-first search meets, its least node first and again last."""
    finished: set[Node] = set()
    for root in nodes:
        path: dict[Node, Iterator[Node]] = {}
        if root not in finished:
            path[root] = iter(targets(root))
        while path:
            last = next(reversed(path))
            following = next(path[last], None)
            if following is None:
                del path[last]
                finished.add(last)
            elif following in path:
                return _closed(tuple(path), following)
            elif following not in finished:
                path[following] = iter(targets(following))
    return ()


def _closed(path: tuple[Node, ...], entry: Node) -> tuple[Node, ...]:
    cycle = path[path.index(entry) :]
    least = cycle.index(min(cycle))
    return (*cycle[least:], *cycle[:least], cycle[least])


class _State:
    """Everything that waits, by what others know it by."""

    def __init__(
        self,
        tasks: Sequence[WaitingTask],
        packets: Sequence[WaitingPacket],
        programs: Sequence[WaitingProgram],
        servers: Sequence[ServerSpec],
        signals: Sequence[str],
    ) -> None:
        self._servers = servers
        self._signals = signals
        self._programs = {program.number: program for program in sorted(programs)}
        self._tasks = {task.task_id: task for task in sorted(tasks)}
        self._packets = {packet.packet_id: packet for packet in sorted(packets)}
        self._packets_of: dict[int, list[int]] = {}
        self._holders: dict[tuple[int, int], list[int]] = {}
        self._first: dict[tuple[int, int, int], int] = {}
        self._raisers: dict[int, list[int]] = {}
        for packet in packets:  # in the order of their queues
            self._first.setdefault(self._queue(packet), packet.packet_id)
        for packet_id, packet in self._packets.items():
            self._packets_of.setdefault(packet.task_id, []).append(packet_id)
            self._holders.setdefault((packet.source, packet.waits_in), []).append(packet_id)
        for task_id, task in self._tasks.items():
            for signal in dict.fromkeys(task.raises):
                self._raisers.setdefault(signal, []).append(task_id)

    def nodes(self) -> Iterator[Node]:
        yield from ((PROGRAM, number) for number in self._programs)
        yield from ((TASK, task_id) for task_id in self._tasks)
        yield from ((PACKET, packet_id) for packet_id in self._packets)

    def waits_for(self, node: Node) -> list[Node]:
        kind, key = node
        if kind == PROGRAM:
            program = self._programs[key]
            others = [(PROGRAM, other) for other in program.programs if other in self._programs]
            return others + [(TASK, program.task_id)] * (program.task_id in self._tasks)
        if kind == PACKET:
            return [(PACKET, packet_id) for packet_id in self._blockers(self._packets[key])]
        task = self._tasks[key]
        task_ids = [*task.afters]
        for signal, _, _ in task.waits:
            task_ids += self._raisers.get(signal, [])
        nodes = [(TASK, task_id) for task_id in sorted(set(task_ids)) if task_id in self._tasks]
        return nodes + [(PACKET, packet_id) for packet_id in self._packets_of.get(key, [])]

    def label(self, node: Node) -> str:
        kind, key = node
        if kind == PROGRAM:
            return f"program {self._programs[key].name!r}"
        if kind == TASK:
            return f"task {id_text(key)}"
        packet = self._packets[key]
        return f"packet {id_text(key)} in front of {self._servers[packet.server].name!r}"

    def cycle_text(self, cycle: Sequence[Node]) -> str:
        """From waiter to waiter; programs that wait for each other say where, and for what."""
        if any(kind != PROGRAM for kind, _ in cycle):
            return " -> ".join(self.label(node) for node in cycle)
        links = []
        for node, following in pairwise(cycle):
            program = self._programs[node[1]]
            links.append(f"waits at {program.line} for {program.thing} by {self.label(following)}")
        return f"{self.label(cycle[0])} {', which '.join(links)}" if links else ""

    def line(self, node: Node) -> str:
        kind, key = node
        if kind == PROGRAM:
            program = self._programs[key]
            what = program.what or self._awaited_signals(program.task_id)
            what = f" ({what})" if what else ""
            return f"{self.label(node)} waits for task {id_text(program.task_id)}{what}"
        if kind == TASK:
            return f"{self.label(node)} waits for {self._conditions(self._tasks[key])}"
        return f"{self.label(node)} waits for {self._space(self._packets[key])}"

    def _awaited_signals(self, task_id: int) -> str:
        waits = self._tasks[task_id].waits if task_id in self._tasks else ()
        return ", ".join(
            f"signal {self._signals[s]!r}, {now} of {least}" for s, now, least in waits
        )

    def _conditions(self, task: WaitingTask) -> str:
        parts = [f"task {id_text(other)}" for other in sorted(set(task.afters))]
        for signal, value, threshold in task.waits:
            raisers = self._named([(TASK, other) for other in self._raisers.get(signal, [])])
            known = f"{raisers} would raise it" if raisers else "no submitted task raises it"
            parts.append(f"signal {self._signals[signal]!r} ({value} of {threshold}); {known}")
        if task.num_packets_left:
            parts.append(f"{task.num_packets_left} of its packets")
        return ", ".join(parts) or "nothing that is known"

    def _space(self, packet: WaitingPacket) -> str:
        server = self._servers[packet.server].name
        blockers = self._blockers(packet)
        named = self._named([(PACKET, packet_id) for packet_id in blockers])
        if self._first[self._queue(packet)] != packet.packet_id:
            return f"its turn behind {named}"
        if packet.last_hop:
            return f"server {server!r}"
        space = f"{packet.num_flits} flits of channel {packet.wants} behind {server!r}"
        return f"{space}, held by {named or 'no waiting packet'}"

    def _blockers(self, packet: WaitingPacket) -> list[int]:
        """The packet it queues behind, or those in the buffer that it needs."""
        first = self._first[self._queue(packet)]
        if first != packet.packet_id:
            return [first]
        return [] if packet.last_hop else self._holders.get((packet.server, packet.wants), [])

    def _queue(self, packet: WaitingPacket) -> tuple[int, int, int]:
        apart = self._servers[packet.server].arbitration is Arbitration.ROUND_ROBIN
        return packet.server, packet.source if apart else 0, packet.waits_in

    def _named(self, nodes: Sequence[Node]) -> str:
        named = " and ".join(self.label(node) for node in nodes[:MAX_NAMED])
        left = len(nodes) - MAX_NAMED
        return f"{named} and {left} more" if left > 0 else named


def _text(waiters: Sequence[str], cycle: str) -> str:
    lines = [f"{len(waiters)} waiting", *waiters[:MAX_LINES]]
    if len(waiters) > MAX_LINES:
        lines.append(f"... and {len(waiters) - MAX_LINES} more")
    if cycle:
        lines.append(f"cycle: {cycle}")
    lines.append("so nothing can go on")  # the rest of the error's sentence follows it
    return "\n".join(lines)


def name_programs(error: LimitError, programs: Sequence[WaitingProgram]) -> LimitError:
    """Return the error of a run with what its programs wait for, those with a line first."""
    with_line = [each for each in programs if each.line or " at " in each.what]
    others = [each for each in programs if each not in with_line]
    lines = [f"{each.name}: {each.what}" for each in (*with_line, *others)[:MAX_PROGRAMS]]
    left = len(programs) - len(lines)
    lines += [f"{left} more"] if left else []
    found = "\n".join([f"{error.found}, and not done:", *lines])
    return LimitError(error.where, found, error.expected, error.fix)
