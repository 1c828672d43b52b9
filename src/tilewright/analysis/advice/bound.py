"""The least latency that a run can have after one change of its machine.

It is what stays of the critical path when nothing on it waits, what the busiest unit, link or
pseudo-channel has to do, and half of the program's own lower bound: whichever is most. ADR 0031
has the argument.
"""

from tilewright.analysis.advice.change import INTERLEAVE, REFRESH, WINDOW, Change, pace_of
from tilewright.records import RunRecord
from tilewright.records.run.part import PathTimes, ResourceUse

MEMORY_PACE = "cube.hbm.timing.clock_ps"
REFRESH_KIND, INTERVAL = "cube.hbm.refresh.kind", "cube.hbm.refresh.interval_ps"
HBM_MODEL = "cube.hbm.model"
_RESTRUCTURING = (INTERLEAVE, WINDOW)  # what comes after what on the path may differ with them


def shortest_ps(record: RunRecord, change: Change) -> int:
    """Return a time that no run with the change is shorter than, at any refresh phase.

    The change makes a field at most twice as fast, and the program does the same commands.
    """
    pace = pace_of(change.field)
    times = record.path or PathTimes()
    on_path = times.command_ps if change.field in _RESTRUCTURING else times.least_ps
    path_ps = sum(_halved(time_ps, field == pace) for field, time_ps in on_path.items())
    works_ps = [
        _work_ps(record, change, row, _halved(row.busy_ps, row.field == pace))
        for row in record.resources
        if not (change.field == INTERLEAVE and row.field == MEMORY_PACE)
    ]
    return max(path_ps, (record.bound_ps or 0) // 2, *works_ps, 0)


def _halved(time_ps: int, is_faster: bool) -> int:
    return time_ps // 2 if is_faster else time_ps


def _work_ps(record: RunRecord, change: Change, row: ResourceUse, busy_ps: int) -> int:
    """Return the time for the work of a resource; a memory stands still while it refreshes.

    In a time T at least T // interval - 1 refreshes lie whole.
    """
    fields = record.machine.fields
    refresh_ps, interval_ps = fields.get(REFRESH), fields.get(INTERVAL)
    if (
        row.field != MEMORY_PACE
        or fields.get(REFRESH_KIND) != "all_bank"
        or fields.get(HBM_MODEL) != "detailed"
        or not isinstance(refresh_ps, int)
        or not isinstance(interval_ps, int)
        or refresh_ps >= interval_ps
    ):
        return busy_ps
    if change.field == REFRESH:
        refresh_ps = change.value
    found_ps, before_ps = busy_ps, -1
    while found_ps != before_ps:
        before_ps = found_ps
        found_ps = busy_ps + refresh_ps * max(0, found_ps // interval_ps - 1)
    return found_ps
