"""Where the time of a program went: along its critical path, back from the end of its last command.

A trace tells of every packet and hold of the program when it was ready, started and ended. What
was ready at a time came after something that ended then, or a known delay before; so the path goes
back by exact equality of times, and its parts are integers that add up. ADR 0013 has the rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.errors import InternalError
from tilewright.report.trace_activity import Activities
from tilewright.report.trace_server import ServerKind, ServerTable

__all__ = ("OwnerTrace", "PathDelays", "ProgramPath", "break_down_program")

Column = npt.NDArray[np.int64]


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
    is_cut: bool = False  # what came first is not there


class ProgramPath(NamedTuple):
    """Parts add up to ``end_ps - start_ps``; of a cut trace the path starts where it was cut."""

    start_ps: int
    end_ps: int
    parts_ps: dict[str, int]
    commands_ps: Mapping[int, int] = MappingProxyType({})
    """By command, its work and what it waited for; these add up too."""


class _Prior(NamedTuple):
    """What an activity came after, and what the time in between was, but for the scheduler's."""

    activity: int
    part: str = "issue"
    dispatch_ps: int = 0


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
    parts: dict[str, int] = {}
    commands: dict[int, int] = {}
    end_ps = until_ps = int(activities.ends[activity])
    while True:
        for part, time_ps in activities.parts_of(activity):
            parts[part] = parts.get(part, 0) + time_ps
        start_ps = int(activities.starts[activity])
        command = int(activities.commands[activity])
        prior = _prior(activities, delays, activity)
        since_ps = start_ps if prior is None else int(activities.ends[prior.activity])
        commands[command] = commands.get(command, 0) + until_ps - since_ps
        until_ps = since_ps
        if prior is None:
            break
        activity = prior.activity
        between_ps = start_ps - since_ps - prior.dispatch_ps
        parts[prior.part] = parts.get(prior.part, 0) + between_ps
        parts["issue"] = parts.get("issue", 0) + prior.dispatch_ps
    if sum(parts.values()) != end_ps - start_ps or min(parts.values()) < 0:
        found = f"parts {parts} of a path from {start_ps} to {end_ps} ps"
        raise InternalError("critical path", found, "parts that add up", "report this")
    return ProgramPath(start_ps, end_ps, parts, commands)


def _prior(activities: Activities, delays: PathDelays, activity: int) -> _Prior | None:
    """What the activity came after; None for the first of all."""
    kind = ServerKind(int(activities.kinds[activity]))
    if kind is ServerKind.CPU:
        return _prior_of_issue(activities, activity)
    if activities.is_exchange[activity]:
        found = _prior_of_exchange(activities, delays, activity)
    else:
        found = _prior_of_work(activities, delays, activity)
    return _since_issue(activities, activity) if found is None else found


def _prior_of_issue(activities: Activities, activity: int) -> _Prior | None:
    """The issue before it, if that kept it; else what its window or its program waited for."""
    start_ps, command = int(activities.starts[activity]), int(activities.commands[activity])
    if command > 0:
        before = int(activities.issues[command - 1])
        if activities.ends[before] == start_ps:
            return _Prior(before)
    found = activities.ended_at(start_ps, activity)
    if found is not None:
        return _Prior(found)
    found = activities.last_end_in(0, start_ps, activity)
    part = "message_wait" if command in activities.message_commands else "other"
    return None if found is None else _Prior(found, part)


def _prior_of_work(activities: Activities, delays: PathDelays, activity: int) -> _Prior | None:
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
            return _Prior(found)
    return None


def _prior_of_exchange(activities: Activities, delays: PathDelays, activity: int) -> _Prior | None:
    """A packet that made room in the channel; else what the access came after, and a walk."""
    start_ps = int(activities.starts[activity])
    if activities.under_way(activity) >= delays.window_packets:
        back = activities.came_back_at(activity)
        if back is not None:
            return _Prior(back)
    is_message = int(activities.commands[activity]) in activities.message_commands
    if is_message and (found := activities.ended_at(start_ps, activity)) is not None:
        return _Prior(found)
    dispatched_ps = start_ps - delays.dispatch_ps
    for wait_ps in (0, delays.hit_ps, delays.walk_ps):
        found = activities.ended_at(dispatched_ps - wait_ps, activity)
        if found is not None:
            return _Prior(found, "translation", delays.dispatch_ps)
    back = activities.came_back_at(activity)  # of a channel that other programs of the PE use too
    if back is not None:
        return _Prior(back)
    if is_message:
        return None
    found = activities.last_end_in(dispatched_ps - delays.walk_ps, dispatched_ps, activity)
    return None if found is None else _Prior(found, "translation", delays.dispatch_ps)


def _since_issue(activities: Activities, activity: int) -> _Prior | None:
    """Nothing of its own ended then: since its issue it waited for another program."""
    issue = activities.issue_of(activity)
    part = (
        "message_wait"
        if int(activities.commands[activity]) in activities.message_commands
        else "other"
    )
    return None if issue is None else _Prior(issue, part)
