"""Changes of the machine that would make a run faster, each with a bound on what it gains.

The bound is that of `advice_bound`. The worth is an estimate from the critical path and only orders
the list. ADR 0031 has the argument.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tilewright.analysis.advice.bound import mean_ps, shortest_ps
from tilewright.analysis.advice.change import (
    INTERLEAVE,
    PCIE_GENERATION,
    REFRESH,
    WINDOW,
    change_of,
)
from tilewright.analysis.advice.estimate import Estimate
from tilewright.machine.field import HOST_LINK
from tilewright.records import RunRecord
from tilewright.records.explain import Advice
from tilewright.units import format_ps, share_text

MAX_ADVICE = 8
LEAST_WORTH = 0.005  # of the latency


class _Idea(NamedTuple):
    """A field to change, the time that this saves by estimate, and why."""

    field: str
    worth_ps: int
    reason: str


def advise(record: RunRecord) -> tuple[Advice, ...]:
    """Return the changes that are worth most, the best first.

    None if the critical path was not traced, or if ``--set`` does not reach the machine.
    """
    if record.path is None or not record.latency_ps or record.machine.is_own:
        return ()
    found = [advice for idea in _ideas(record) if (advice := _advice(record, idea)) is not None]
    found = [advice for advice in found if advice.worth >= LEAST_WORTH]
    return tuple(sorted(found, key=lambda advice: (-advice.worth, advice.field))[:MAX_ADVICE])


def _advice(record: RunRecord, idea: _Idea) -> Advice | None:
    change = change_of(idea.field, record.machine.fields)
    if change is None:
        return None
    total_ps, least_ps = mean_ps(record), shortest_ps(record, change)
    bound = max(0.0, 1 - least_ps / total_ps)
    return Advice(
        option=change.option,
        field=change.field,
        least_ps=least_ps,
        bound=bound,
        worth=min(bound, idea.worth_ps / total_ps),
        reason=idea.reason,
    )


def _ideas(record: RunRecord) -> Iterator[_Idea]:
    estimate, total_ps = Estimate(record), mean_ps(record)
    for field in dict.fromkeys((*estimate.times.work_ps, *estimate.times.queue_ps)):
        name = PCIE_GENERATION if field == HOST_LINK else field
        reason = f"it sets {_part(estimate.set_ps(field), total_ps)} of the critical path"
        queue_ps = estimate.times.queue_ps.get(field, 0)
        if queue_ps:
            reason += f", {format_ps(queue_ps)} of it waiting in front of links"
        yield _Idea(name, estimate.faster_ps(field), reason)
    refresh_ps = estimate.refresh_ps
    reason = f"refresh delays the critical path by {_part(refresh_ps, total_ps)} on average"
    yield _Idea(REFRESH, refresh_ps // 2, reason)
    if record.channels is not None:
        reason = (
            f"accesses wait {_part(estimate.memory_queue_ps, total_ps)} for others in memories, "
            f"while on average {estimate.channels_in_use:.1f} of {len(record.channels.shares)} "
            "pseudo-channels of a slice move data"
        )
        yield _Idea(INTERLEAVE, estimate.crowding_ps, reason)
    window_ps = estimate.window_ps
    reason = f"more bytes under way would hide {_part(window_ps, total_ps)} of latency"
    yield _Idea(WINDOW, window_ps, reason)


def _part(time_ps: int, total_ps: float) -> str:
    return f"{format_ps(time_ps)} ({share_text(min(1.0, time_ps / total_ps))})"
