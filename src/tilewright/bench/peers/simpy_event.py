"""What the SimPy peers share: one delayed event with a priority, the clock of a run, its count.

SimPy orders events by (time, priority, insertion). Arrivals have the priority 2 + id, so that ties
go to the lower id as docs/engine.md demands; SimPy's own events (1) come before, grants after.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import simpy
from simpy.core import SimTime
from simpy.events import EventPriority

from tilewright.validation.engine_run import PeerRun

GRANT = EventPriority(2**62)  # above the priority of every arrival


class Delayed(simpy.Event):
    """A ``simpy.Timeout`` with a priority and one callback."""

    def __init__(
        self,
        env: simpy.Environment,
        action: Callable[[Any], None],
        value: object,
        priority: EventPriority,
        delay_ps: SimTime,
    ) -> None:
        # as in simpy.Timeout, the fields are set here rather than by Event.__init__, for speed
        self.env = env
        self.callbacks = [action]
        self._value = value
        self._ok = True
        env.schedule(self, priority, delay_ps)


def arrival_priority(message_id: int) -> EventPriority:
    return EventPriority(2 + message_id)


class Injectable(Protocol):
    """A packet before it enters: ``tail_ps`` is when it does."""

    tail_ps: SimTime
    priority: EventPriority


def inject(
    env: simpy.Environment, packets: Iterable[Injectable], ready: Callable[[Delayed], None]
) -> None:
    """Each entry schedules the next one, so that SimPy's heap holds only what is under way."""
    entries = iter(sorted(packets, key=lambda packet: (packet.tail_ps, packet.priority)))

    def enter(event: Delayed) -> None:
        enter_next()
        ready(event)

    def enter_next() -> None:
        packet = next(entries, None)
        if packet is not None:
            Delayed(env, enter, packet, packet.priority, packet.tail_ps - env.now)

    enter_next()


def run_timed(
    env: simpy.Environment, delivered_ps: Mapping[int, SimTime], num_hops: int
) -> PeerRun:
    """Run until no event is left; fill in what was delivered meanwhile."""
    start = time.perf_counter()
    env.run()
    seconds = time.perf_counter() - start
    times_ps = {message_id: int(time_ps) for message_id, time_ps in delivered_ps.items()}
    num_events = next(env._eid)  # SimPy numbers every event that it queues, from 0
    return PeerRun(MappingProxyType(times_ps), seconds, num_hops, num_events)
