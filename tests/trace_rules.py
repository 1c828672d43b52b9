"""What every trace must obey, checked from the records alone: law of time, order, no idling."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise

from tests.engine_programs import FLIT_BYTES, Outcome, Program, TaskPlan
from tilewright.engine import TraceRecord

__all__ = ("Visit", "check_times", "check_turns", "check_work", "least_makespan_ps", "visits_of")

SOURCE = -1
Slot = tuple[int, int]  # input and channel


@dataclass(frozen=True)
class Visit:
    """A packet at one server of its route: the record, and what the plan says about it."""

    record: TraceRecord
    program: Program
    task: TaskPlan
    hop: int
    num_flits: int
    next_record: TraceRecord | None = None

    @property
    def route(self) -> tuple[tuple[int, int], ...]:
        assert self.task.route is not None
        return self.program.routes[self.task.route]

    @property
    def server(self) -> int:
        return self.record.server

    @property
    def is_last(self) -> bool:
        return self.hop + 1 == len(self.route)

    @property
    def wants(self) -> int:
        return self.route[self.hop][1]

    @property
    def came_by(self) -> Slot:
        return self.route[self.hop - 1] if self.hop else (SOURCE, self.route[0][1])

    @property
    def queue(self) -> Slot:
        source, channel = self.came_by
        return (source if self.program.servers[self.server].round_robin else SOURCE, channel)

    @property
    def turn(self) -> tuple[int, int]:
        return self.record.ready_ps, self.record.packet_id

    @cached_property
    def returns_ps(self) -> int:
        """When its credits are back."""
        assert self.next_record is not None
        return self.next_record.tail_ps + self.program.servers[self.server].credit_ps


def packets_of(program: Program, task: TaskPlan) -> Iterator[int]:
    """The flits of each packet."""
    if task.num_bytes is None:
        yield 1
        return
    flits = -(-task.num_bytes // FLIT_BYTES)
    while flits > 0:
        yield min(flits, program.packet_flits)
        flits -= program.packet_flits


def visits_of(program: Program, outcome: Outcome) -> list[Visit]:
    """Every record with what the plan says about its packet, in the order of the trace."""
    packets: dict[int, tuple[TaskPlan, int]] = {}
    for first_id, submit in zip(outcome.first_ids, program.submits, strict=False):
        ids = count(first_id)
        for task in program.plan_of(submit):
            for num_flits in packets_of(program, task):
                packets[next(ids)] = task, num_flits
    records: dict[int, list[TraceRecord]] = defaultdict(list)
    visits: list[Visit] = []
    for record in outcome.trace:
        task, num_flits = packets[record.packet_id]
        hop = len(records[record.packet_id])
        records[record.packet_id].append(record)
        visits.append(Visit(record, program, task, hop, num_flits))
    return [
        visit if visit.is_last else replace(visit, next_record=following)
        for visit in visits
        for following in [_next_of(visit, records[visit.record.packet_id])]
    ]


def _next_of(visit: Visit, records: Sequence[TraceRecord]) -> TraceRecord | None:
    return records[visit.hop + 1] if visit.hop + 1 < len(records) else None


def by_server(visits: Iterable[Visit]) -> dict[int, list[Visit]]:
    groups: dict[int, list[Visit]] = defaultdict(list)
    for visit in visits:
        groups[visit.server].append(visit)
    return groups


def check_times(visits: Sequence[Visit]) -> None:
    """No negative slack, one packet at a time, and the law of time on every hop (IN5)."""
    for visit in visits:
        record, server = visit.record, visit.program.servers[visit.server]
        assert record.server == visit.route[visit.hop][0], visit
        flit_ps = server.flit_ps or 0
        least_ps = visit.task.hold_ps or visit.num_flits * flit_ps
        assert record.start_ps >= record.ready_ps, visit
        assert record.tail_ps >= record.start_ps + least_ps, visit
        if visit.next_record is None:
            continue
        following = visit.program.servers[visit.next_record.server]
        assert visit.next_record.ready_ps > record.ready_ps, visit
        if server.service is None:
            takes_whole = following.reassemble or following.flit_ps is None
            behind_ps = record.tail_ps if takes_whole else record.start_ps + flit_ps
            assert visit.next_record.ready_ps == behind_ps + server.latency_ps, visit
    for group in by_server(visits).values():
        for before, after in pairwise(group):
            assert after.record.start_ps >= before.record.tail_ps, (before, after)


def check_turns(visits: Sequence[Visit]) -> None:
    """Packets leave a queue in the order (ready, id) in which they came (IN6)."""
    for group in by_server(visits).values():
        last: dict[Slot, Visit] = {}
        for visit in group:
            before = last.get(visit.queue)
            assert before is None or before.turn < visit.turn, (before, visit)
            last[visit.queue] = visit


def check_work(visits: Sequence[Visit]) -> None:
    """A free server with a packet that may start starts it, and by its rule (IN4)."""
    for server, group in by_server(visits).items():
        free_ps = 0
        for index, visit in enumerate(group):
            idle = _Idle(group, index)
            for at_ps in idle.changes(free_ps, visit.record.start_ps):
                assert not idle.startable(at_ps), (server, at_ps, idle.startable(at_ps))
            free_ps = visit.record.tail_ps
        # a server that takes no time may be given credits within the instant, after its choice
        if all(visit.record.tail_ps > visit.record.start_ps for visit in visits):
            _check_choices(group)


def _check_choices(group: Sequence[Visit]) -> None:
    is_round_robin = group[0].program.servers[group[0].server].round_robin
    last: Slot = (SOURCE, -1)
    for index, visit in enumerate(group):
        firsts = _Idle(group, index).startable(visit.record.start_ps)
        if is_round_robin:
            later = [first for first in firsts if first.queue > last]
            chosen = min(later or firsts, key=lambda first: first.queue)
        else:
            chosen = min(firsts, key=lambda first: first.turn)
        assert chosen is visit, (chosen, visit)
        last = visit.queue


@dataclass(frozen=True, slots=True)
class _Idle:
    """A server between two grants: it has taken ``group[:index]`` and not yet the others."""

    group: Sequence[Visit]
    index: int

    def changes(self, from_ps: int, before_ps: int) -> list[int]:
        """The times in a window at which a packet might become startable."""
        times = {from_ps}
        times.update(visit.record.ready_ps for visit in self.group[self.index :])
        times.update(v.returns_ps for v in self.group[: self.index] if v.next_record is not None)
        return [at_ps for at_ps in sorted(times) if from_ps <= at_ps < before_ps]

    def startable(self, at_ps: int) -> list[Visit]:
        """The first packets of queues that may start now."""
        firsts: dict[Slot, Visit] = {}
        for visit in self.group[self.index :]:
            first = firsts.get(visit.queue)
            if visit.record.ready_ps <= at_ps and (first is None or visit.turn < first.turn):
                firsts[visit.queue] = visit
        return [visit for visit in firsts.values() if self._has_space(visit, at_ps)]

    def _has_space(self, visit: Visit, at_ps: int) -> bool:
        buffer_flits = visit.program.servers[visit.server].buffer_flits
        if buffer_flits is None or visit.is_last:
            return True
        taken = sum(
            other.num_flits
            for other in self.group[: self.index]
            if not other.is_last and other.wants == visit.wants and other.returns_ps > at_ps
        )
        return taken + visit.num_flits <= buffer_flits


def least_makespan_ps(program: Program) -> int:
    """The longest chain of any graph on an idle machine (IN3); Python servers count as the wire."""
    return max((_graph_ps(program, graph) for graph in used_graphs(program)), default=0)


def used_graphs(program: Program) -> list[tuple[TaskPlan, ...]]:
    return [program.plan_of(submit) for submit in program.submits]


def _graph_ps(program: Program, graph: Sequence[TaskPlan]) -> int:
    ends_ps: list[int] = []
    for task in graph:
        start_ps = max((ends_ps[other] for other in task.after), default=0) + task.delay_ps
        ends_ps.append(start_ps + _task_ps(program, task))
    return max(ends_ps)


def _task_ps(program: Program, task: TaskPlan) -> int:
    if task.route is None:
        return 0
    servers = [program.servers[server] for server, _ in program.routes[task.route]]
    latency_ps = sum(server.latency_ps for server in servers if server.service is None)
    if task.hold_ps is not None:
        return task.hold_ps + servers[0].latency_ps
    times_ps = [server.flit_ps or 0 for server in servers]
    num_flits = max(packets_of(program, task))
    return latency_ps + sum(times_ps) + (num_flits - 1) * max(times_ps)
