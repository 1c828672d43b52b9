"""What an engine is made of, by name and number: servers, routes and signals, with checks."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TypeVar

from tilewright.engine.fault import Names
from tilewright.engine.issuer import IssuerSpec
from tilewright.engine.spec import EngineSpec, ServerSpec, check_integer
from tilewright.errors import EngineError, meant
from tilewright.units import MAX_PS

MAX_CHANNEL = 1023

Item = TypeVar("Item")


class Layout:
    """Grows with the core, which numbers servers, routes and signals in the order of adding."""

    def __init__(self) -> None:
        self.servers: list[ServerSpec] = []
        self.num_routes = 0
        self.num_gates = 0
        self.num_hops = 0
        self._server_numbers: dict[str, int] = {}
        self.signals: list[str] = []  # names by number; empty: the signal was removed
        self._signal_names: set[str] = set()  # of those that there are
        self._unrated: set[int] = set()  # servers that no packet can cross
        self._unrated_routes: set[int] = set()
        self._memories: set[int] = set()
        self._issuers: set[IssuerSpec] = set()  # that were found right

    @property
    def names(self) -> Names:
        return Names([server.name for server in self.servers], self.signals)

    def check_server(self, spec: ServerSpec, engine: EngineSpec) -> None:
        """What only an engine can know about a server's specification."""
        if not isinstance(spec, ServerSpec):
            raise EngineError("server", repr(spec), "a ServerSpec", "describe it by a ServerSpec")
        where = f"server {spec.name!r}"
        if spec.name in self._server_numbers:
            raise EngineError(where, "a second one", "one owner of the name", "rename one")
        least = engine.packet_flits
        if spec.buffer_flits is not None and spec.buffer_flits < least:
            expected = f"at least {least}, the flits of a packet"
            fix = "enlarge the buffer or make packets smaller"
            raise EngineError(where, f"buffer_flits = {spec.buffer_flits}", expected, fix)

    def note_server(self, spec: ServerSpec, *, is_memory: bool = False) -> None:
        number = len(self.servers)
        self.servers.append(spec)
        self._server_numbers[spec.name] = number
        if is_memory:
            self._memories.add(number)
        elif spec.bytes_per_us is None and spec.service is None:
            self._unrated.add(number)

    def check_memory(self, server: object) -> None:
        if server not in self._memories:
            fix = "use what add_memory returned"
            raise EngineError("engine", f"server {server!r}", "a memory of this engine", fix)

    def resolve_route(
        self, servers: Sequence[int | str], channels: int | Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Numbers of servers, and a channel for each."""
        where = f"route {self.num_routes}"
        listed = None if isinstance(servers, str) else _listed(servers)
        if not listed:
            fix = "list the servers in order"
            raise EngineError(where, repr(servers), "a list of at least one server", fix)
        numbers = [self._server_number(where, server) for server in listed]
        each = [channels] * len(numbers) if isinstance(channels, int) else _listed(channels)
        if each is None:
            expected, fix = "an int, or a list of one for each server", "list the channels"
            raise EngineError(where, f"channels = {channels!r}", expected, fix)
        if len(each) != len(numbers):
            found = f"{len(each)} channels for {len(numbers)} servers"
            raise EngineError(where, found, "one for each server", "add or remove some")
        for channel in each:
            check_integer(where, "channel", channel, 0, MAX_CHANNEL)
        if not self._memories.isdisjoint(numbers[:-1]):
            name = next(self.servers[n].name for n in numbers[:-1] if n in self._memories)
            fix = "end the route there"
            raise EngineError(where, f"memory {name!r} on the way", "a memory only at its end", fix)
        if len(numbers) > 1 and not self._unrated.isdisjoint(numbers):
            self._refuse_unrated(where, numbers)
        return numbers, each

    def note_route(self, numbers: Sequence[int]) -> None:
        if not self._unrated.isdisjoint(numbers):
            self._unrated_routes.add(self.num_routes)
        self.num_routes += 1
        self.num_hops += len(numbers)

    def check_signal_name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            found = f"the name {name!r}"
            raise EngineError("signal", found, "a text that is not empty", "give it a name")
        if name in self._signal_names:
            where = f"signal {name!r}"
            raise EngineError(where, "a second one", "one owner of the name", "rename one")

    def note_signal(self, name: str, signal: int) -> None:
        """Name a signal that is new, or whose number a removed one had."""
        self.signals[signal : signal + 1] = [name]
        self._signal_names.add(name)

    def forget_signal(self, signal: int) -> None:
        """Let the name and the number of a signal be used again."""
        self._signal_names.remove(self.signals[signal])
        self.signals[signal] = ""

    def check_signal(self, signal: int) -> None:
        is_number = type(signal) is int and 0 <= signal < len(self.signals)
        if not is_number or not self.signals[signal]:
            fix = "use what add_signal returned"
            raise EngineError("engine", f"signal {signal!r}", "a signal of this engine", fix)

    def check_round_trip(
        self,
        out: object,
        back: object,
        gate: object,
        inside: object,
        writes: object,
        is_home: object,
    ) -> None:
        routes = [("out", out), ("back", back)]
        if inside is not None:
            routes.append(("inside", inside))
            if writes or inside == out:
                what = "of one that writes" if writes else "as out, too"
                expected = "what data that are read cross"
                fix = "leave it out, or name a route of its own"
                raise EngineError("round trip", f"inside = {inside!r} {what}", expected, fix)
        for name, route in routes:
            if type(route) is not int or not 0 <= route < self.num_routes:
                fix = "use what add_route returned"
                found = f"{name} = {route!r}"
                raise EngineError("round trip", found, "a route of this engine", fix)
            if route in self._unrated_routes:
                found = f"{name} = {route} through a server without a rate"
                fix = "give it bytes_per_us or a service"
                raise EngineError("round trip", found, "servers that packets can cross", fix)
        if gate is not None and (type(gate) is not int or not 0 <= gate < self.num_gates):
            fix = "use what add_gate returned, or None"
            raise EngineError("round trip", f"gate = {gate!r}", "a gate of this engine", fix)
        for name, value in (("writes", writes), ("is_home", is_home)):
            if type(value) is not bool:
                found, fix = f"{name} = {value!r}", "pass True or False"
                raise EngineError("round trip", found, "a bool", fix)

    def check_issuer(self, spec: IssuerSpec) -> None:
        """Its figures; that a route has one server the core checks at the first command."""
        if spec in self._issuers:
            return
        for field in fields(spec):
            value = getattr(spec, field.name)
            high = self.num_routes - 1 if field.name.endswith("route") else MAX_PS
            is_free = field.name.endswith(("route", "dispatch_ps", "hit_ps", "walk_ps"))
            low = 0 if is_free else 1
            check_integer("issuer", field.name, value, low, high)
        self._issuers.add(spec)

    def _server_number(self, where: str, server: int | str) -> int:
        if isinstance(server, str):
            number = self._server_numbers.get(server)
            if number is not None:
                return number
        elif type(server) is int and 0 <= server < len(self.servers):
            return server
        fix = meant(server, self._server_numbers, "add it first", most=3)
        raise EngineError(where, f"an unknown server {server!r}", "a server of this engine", fix)

    def _refuse_unrated(self, where: str, numbers: Sequence[int]) -> None:
        name = next(self.servers[number].name for number in numbers if number in self._unrated)
        found = f"server {name!r} without a rate on a route of {len(numbers)} servers"
        fix = "give it bytes_per_us or a service, or a route of its own"
        raise EngineError(where, found, "servers that packets can cross", fix)


def _listed(items: Iterable[Item]) -> list[Item] | None:
    """None for what cannot be iterated, whatever its annotation says."""
    return list(items) if isinstance(items, Iterable) else None
