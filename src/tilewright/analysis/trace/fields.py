"""Critical paths by field of the machine file, across the messages of several programs.

A program that waits for a message waits for whoever sends it: where the trace has the sender too,
the path goes on there. ``trace_path`` has the rules inside a program.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from tilewright.analysis.trace.activity import Activities, Column
from tilewright.analysis.trace.critical_path import PathDelays, Visit, walk_back
from tilewright.analysis.trace.servers import ServerTable
from tilewright.engine.core import OWNER_SHIFT
from tilewright.errors import InternalError

_BETWEEN = {"issue": "pe.scheduler.command_ps", "translation": "pe.mmu.walk_ps"}


class PathFields(NamedTuple):
    """A path by fields of the machine file: what each sets the time of.

    ``least_ps`` is of the steps that come after each other whatever else the machine does, and
    without waiting: a run that does the same commands has them all, one after the other.
    """

    work_ps: Counter[str]  # waiting for units and inside memories included
    queue_ps: Counter[str]  # waiting in front of the links whose rate the field sets
    least_ps: Counter[str]
    refresh_ps: int = 0
    unknown_ps: int = 0  # waiting for others whose path is not known
    num_accesses: int = 0  # of memories
    window_ps: int = 0  # of accesses whose return let the next one set out


class Traces:
    """What many owners did; of each it is sorted out when it is asked for."""

    def __init__(self, rows: Column, memory_rows: Column, servers: ServerTable) -> None:
        self._rows = rows[np.argsort(rows[:, 1] >> OWNER_SHIFT, kind="stable")]
        self._owners = self._rows[:, 1] >> OWNER_SHIFT
        self._memory_rows = memory_rows
        self._memory_owners = memory_rows[:, 1] >> OWNER_SHIFT
        self._servers = servers
        self._activities: dict[int, Activities] = {}
        used, places = np.unique(self._rows[:, 0], return_inverse=True)
        latencies = np.array([servers[int(number)].latency_ps for number in used], np.int64)
        self._ends = self._rows[:, 4] + latencies[places]
        self._by_end = np.argsort(self._ends, kind="stable")
        self._ends_in_order = self._ends[self._by_end]

    def of(self, owner: int) -> Activities:
        """Return the activities of one owner."""
        if owner not in self._activities:
            low, high = np.searchsorted(self._owners, (owner, owner + 1))
            memory_rows = self._memory_rows[self._memory_owners == owner]
            self._activities[owner] = Activities(self._rows[low:high], memory_rows, self._servers)
        return self._activities[owner]

    def message_at(self, at_ps: int, besides: Activities) -> tuple[Activities, int] | None:
        """Return the activities of another owner, and one of a message that ended exactly then."""
        low, high = np.searchsorted(self._ends_in_order, (at_ps, at_ps + 1))
        for row in self._by_end[low:high].tolist():
            activities = self.of(int(self._owners[row]))
            if activities is besides:
                continue
            activity = int(np.searchsorted(activities.ids, self._rows[row, 1]))
            is_message = int(activities.commands[activity]) in activities.message_commands
            if is_message and activities.ends[activity] == at_ps:
                return activities, activity
        return None


def fields_of_path(traces: Traces, owner: int, delays: PathDelays, end_ps: int) -> PathFields:
    """Return the path of what an owner ended last by ``end_ps``; it has ended something."""
    activities = traces.of(owner)
    last = activities.last_end_in(0, end_ps, len(activities.ids))
    if last is None:
        found = f"no activity of owner {owner} by {end_ps} ps"
        raise InternalError("critical path", found, "one at least", "report this")
    walk = partial(walk_back, activities, delays, last, traces.message_at)
    times = _times_of(walk())
    for visit in walk(is_binding=True):
        _add_least(times.least_ps, visit)
    for counter in (times.work_ps, times.queue_ps, times.least_ps):
        del counter[""]
    return times


def _times_of(visits: Iterable[Visit]) -> PathFields:
    work, queue = Counter[str](), Counter[str]()
    refresh_ps = unknown_ps = num_accesses = window_ps = 0
    for activities, activity, prior, between_ps in visits:
        for time in activities.fields_of(activity):
            work[time.field] += time.work_ps
            queue[time.field] += time.queue_ps
        refresh_ps += sum(ps for part, ps in activities.parts_of(activity) if part == "refresh")
        num_accesses += bool(activities.is_exchange[activity])
        if prior is None:
            continue
        work[_BETWEEN.get(prior.part, "")] += between_ps
        work[_BETWEEN["issue"]] += prior.dispatch_ps
        unknown_ps += between_ps if prior.part not in _BETWEEN else 0
        if prior.is_window:
            back = prior.activity
            window_ps += int(activities.ends[back] - activities.starts[back])
    return PathFields(work, queue, Counter(), refresh_ps, unknown_ps, num_accesses, window_ps)


def _add_least(least: Counter[str], visit: Visit) -> None:
    for time in visit.activities.fields_of(visit.activity):
        least[time.field] += time.least_ps
    prior = visit.prior
    if prior is not None and prior.part in _BETWEEN and prior.is_known:
        least[_BETWEEN[prior.part]] += visit.between_ps
        least[_BETWEEN["issue"]] += prior.dispatch_ps
