"""Where the time of a program went: along its critical path, back from the end of its last command.

A trace tells of every packet and hold of the program when it was ready, started and ended. What
was ready at a time came after something that ended then, or a known delay before; so the path goes
back by exact equality of times, and its parts are integers that add up. ADR 0013 has the rules.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tilewright.analysis.trace.activity import Activities, Column
from tilewright.analysis.trace.servers import ServerKind, ServerTable
from tilewright.errors import InternalError

MESSAGE_WAIT = "message_wait"


@dataclass(frozen=True, slots=True)
class PathDelays:
    """What may lie between an end and what comes after it; and the window of a DMA channel."""

    dispatch_ps: int
    hit_ps: int
    walk_ps: int
    window_packets: int


@dataclass(frozen=True, slots=True)
class OwnerTrace:
    """All that one owner's packets did: columns of TraceRecord and of MemoryRecord."""

    rows: Column  # (n, 5)
    memory_rows: Column  # (n, 5)


class ProgramPath(NamedTuple):
    """Parts add up to ``end_ps - start_ps``; of a cut trace the path starts where it was cut."""

    start_ps: int
    end_ps: int
    parts_ps: dict[str, int]
    commands_ps: Mapping[int, int] = MappingProxyType({})
    """By command, its work and what it waited for; these add up too."""


class Prior(NamedTuple):
    """What an activity came after, and what the time in between was, but for the scheduler's."""

    activity: int
    part: str = "issue"
    dispatch_ps: int = 0
    is_window: bool = False  # its return made room in the channel
    is_known: bool = True  # what the time in between was


class Visit(NamedTuple):
    """A step of a path; ``prior`` only if the time in between is of the same program.

    ``between_ps`` is that time, but for dispatch.
    """

    activities: Activities
    activity: int
    prior: Prior | None = None
    between_ps: int = 0


SenderOf = Callable[[int, Activities], tuple[Activities, int] | None]
"""The activity of another program whose message arrived at a time, if it is known."""


def break_down_program(
    trace: OwnerTrace, servers: ServerTable, delays: PathDelays, end_ps: int
) -> ProgramPath | None:
    """The path to what ended last by ``end_ps``; None if nothing did.

    What goes on after it is no part of it: the answer to the host, credits of messages.
    """
    if not len(trace.rows):
        return None
    activities = Activities(trace.rows, trace.memory_rows, servers)
    activity = activities.last_end_in(0, end_ps, len(activities.ids))
    if activity is None:
        return None
    parts: Counter[str] = Counter()
    commands: Counter[int] = Counter()
    end_ps = until_ps = int(activities.ends[activity])
    start_ps = end_ps
    for step in walk_back(activities, delays, activity):
        for part, time_ps in activities.parts_of(step.activity):
            parts[part] += time_ps
        start_ps = int(activities.starts[step.activity])
        since_ps = start_ps
        if step.prior is not None:
            since_ps = int(activities.ends[step.prior.activity])
            parts[step.prior.part] += step.between_ps
            parts["issue"] += step.prior.dispatch_ps
        commands[int(activities.commands[step.activity])] += until_ps - since_ps
        until_ps = since_ps
    if parts.total() != end_ps - start_ps or min(parts.values()) < 0:
        found = f"parts {dict(parts)} of a path from {start_ps} to {end_ps} ps"
        raise InternalError("critical path", found, "parts that add up", "report this")
    return ProgramPath(start_ps, end_ps, dict(parts), dict(commands))


def walk_back(
    activities: Activities,
    delays: PathDelays,
    activity: int,
    sender_of: SenderOf | None = None,
    *,
    is_binding: bool = False,
) -> Iterator[Visit]:
    """Yield an activity and all that it came after, back to the first, through known senders.

    A binding path does not wait for a unit: it goes on with the activity that kept it.
    """
    while True:
        holder = activities.held_up_by(activity) if is_binding else None
        if holder is not None:
            yield Visit(activities, activity)
            activity = holder
            continue
        prior = prior_of(activities, delays, activity)
        if prior is None:
            yield Visit(activities, activity)
            return
        start_ps = int(activities.starts[activity])
        if sender_of is not None and prior.part == MESSAGE_WAIT:
            # a command's first step begins so long after the message that it waits for
            sender = sender_of(start_ps - delays.dispatch_ps, activities)
            if sender is not None:
                yield Visit(activities, activity, Prior(activity), delays.dispatch_ps)
                activities, activity = sender
                continue
        apart_ps = start_ps - int(activities.ends[prior.activity])
        yield Visit(activities, activity, prior, apart_ps - prior.dispatch_ps)
        activity = prior.activity


def prior_of(activities: Activities, delays: PathDelays, activity: int) -> Prior | None:
    """What the activity came after; None for the first of all."""
    kind = ServerKind(int(activities.kinds[activity]))
    if kind is ServerKind.CPU:
        return _prior_of_issue(activities, activity)
    if activities.is_exchange[activity]:
        found = _prior_of_exchange(activities, delays, activity)
    else:
        found = _prior_of_work(activities, delays, activity)
    return _since_issue(activities, activity) if found is None else found


def _prior_of_issue(activities: Activities, activity: int) -> Prior | None:
    """The issue before it, if that kept it; else what its window or its program waited for."""
    start_ps, command = int(activities.starts[activity]), int(activities.commands[activity])
    if command > 0:
        before = int(activities.issues[command - 1])
        if activities.ends[before] == start_ps:
            return Prior(before)
    found = activities.ended_at(start_ps, activity)
    if found is not None:
        return Prior(found)
    found = activities.last_end_in(0, start_ps, activity)
    part = MESSAGE_WAIT if command in activities.message_commands else "other"
    return None if found is None else Prior(found, part)


def _prior_of_work(activities: Activities, delays: PathDelays, activity: int) -> Prior | None:
    """Steps of messages come at once after each other, all else by way of the scheduler."""
    start_ps = int(activities.starts[activity])
    waits_ps = [delays.dispatch_ps, 0]
    if (
        activities.is_transfer[activity]
        or int(activities.commands[activity]) in activities.message_commands
    ):
        waits_ps.reverse()
    for wait_ps in waits_ps:
        found = activities.ended_at(start_ps - wait_ps, activity)
        if found is not None:
            return Prior(found)
    return None


def _prior_of_exchange(activities: Activities, delays: PathDelays, activity: int) -> Prior | None:
    """A packet that made room in the channel; else what the access came after, and a walk."""
    start_ps = int(activities.starts[activity])
    if activities.under_way(activity) >= delays.window_packets:
        back = activities.came_back_at(activity)
        if back is not None:
            return Prior(back, is_window=True)
    is_message = int(activities.commands[activity]) in activities.message_commands
    if is_message and (found := activities.ended_at(start_ps, activity)) is not None:
        return Prior(found)
    dispatched_ps = start_ps - delays.dispatch_ps
    for wait_ps in (0, delays.hit_ps, delays.walk_ps):
        found = activities.ended_at(dispatched_ps - wait_ps, activity)
        if found is not None:
            return Prior(found, "translation", delays.dispatch_ps)
    back = activities.came_back_at(activity)  # of a channel that other programs of the PE use too
    if back is not None:
        return Prior(back, is_window=True)
    if is_message:
        return None
    found = activities.last_end_in(dispatched_ps - delays.walk_ps, dispatched_ps, activity)
    if found is None:
        return None
    return Prior(found, "translation", delays.dispatch_ps, is_known=False)


def _since_issue(activities: Activities, activity: int) -> Prior | None:
    """Nothing of its own ended then: since its issue it waited for another program."""
    issue = activities.issue_of(activity)
    part = (
        MESSAGE_WAIT
        if int(activities.commands[activity]) in activities.message_commands
        else "other"
    )
    return None if issue is None else Prior(issue, part)
