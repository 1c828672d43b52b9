"""What a run amounted to, per server and per route: integers, and exact ratios of them."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from tilewright.errors import EngineError


class ServerStatistics(NamedTuple):
    """The counters of one server; ``docs/engine.md`` section 6 defines them."""

    name: str
    packets: int
    num_bytes: int
    busy_ps: int
    held_ps: int
    wait_ps: int
    queue_ps: int
    max_queue: int
    free_ps: int


class RouteStatistics(NamedTuple):
    """The counters of one route."""

    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int


@dataclass(frozen=True)
class Statistics:
    """All counters at one simulated time; equal for both engines, but for ``events``."""

    now_ps: int
    events: int = field(compare=False)  # steps of this core: its own affair
    servers: tuple[ServerStatistics, ...]
    routes: tuple[RouteStatistics, ...]

    def server(self, name: str) -> ServerStatistics:
        found = self._by_name.get(name)
        if found is None:
            fix = "use the name of its ServerSpec"
            raise EngineError("statistics", f"no server {name!r}", "a server of this engine", fix)
        return found

    def utilisation(self, name: str) -> Fraction:
        """Share of the time so far in which the server moved something, at most 1.

        Work that has been given its start counts at once, so the time is that until it is done.
        """
        server = self.server(name)
        return _ratio(server.busy_ps, max(self.now_ps, server.free_ps))

    def mean_wait_ps(self, name: str) -> Fraction:
        """From ready to start, per packet."""
        server = self.server(name)
        return _ratio(server.wait_ps, server.packets)

    def mean_queue(self, name: str) -> Fraction:
        """Packets that wait in front of the server, on average over the time so far."""
        return _ratio(self.server(name).queue_ps, self.now_ps)

    @cached_property
    def _by_name(self) -> dict[str, ServerStatistics]:
        return {server.name: server for server in self.servers}


def _ratio(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)
