"""What a user tells an engine, and the view of a packet that a Python server gets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import NamedTuple, Protocol

from tilewright.errors import EngineError, LimitError, RequestError, UnitError, UsageError
from tilewright.limits import MAX_FLIT_BYTES, MAX_PACKET_FLITS
from tilewright.units import MAX_PS, PS_PER_S, parse_ps


class EngineKind(Enum):
    """Two engines, one specification."""

    REFERENCE = "reference"
    NATIVE = "native"


class Auto(Enum):
    """Not an EngineKind, so that nothing below the choice can ever see it."""

    AUTO = "auto"


AUTO = Auto.AUTO


def resolve_engine(choice: EngineKind | Auto, *, native_built: bool) -> EngineKind:
    """Settle an open choice; refuse what is not there.

    >>> resolve_engine(AUTO, native_built=False)
    <EngineKind.REFERENCE: 'reference'>
    """
    if isinstance(choice, Auto):
        return EngineKind.NATIVE if native_built else EngineKind.REFERENCE
    if not isinstance(choice, EngineKind):
        expected = "AUTO, EngineKind.REFERENCE or EngineKind.NATIVE"
        fix = "import EngineKind from tilewright.engine"
        raise EngineError("engine", f"the choice {choice!r}", expected, fix)
    if choice is EngineKind.NATIVE and not native_built:
        fix = "reinstall with a C++ compiler, or choose reference"
        raise EngineError("engine", "no compiled core", "the native engine", fix)
    return choice


MAX_FLIT_PS = 2**40
MAX_SALT = 2**62


class Arbitration(Enum):
    """Which waiting packet a server takes next."""

    FIFO = "fifo"
    ROUND_ROBIN = "round_robin"


class PacketView(NamedTuple):
    """What a Python server may know about the packet it serves."""

    packet_id: int
    task_id: int
    position: int  # in its transfer
    num_flits: int
    num_bytes: int
    tag: int  # the task's tag, an address for instance
    offset_bytes: int = 0  # from the tag to the address of the packet's own bytes


class Service(Protocol):
    """A server written in Python; stateful is fine, the engine calls it in event order."""

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        """Time to hold the server and latency behind it, both in ps."""
        ...


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """The packet format of all routes, and the order inside phase 0 (which changes no result)."""

    flit_bytes: int = 64
    packet_flits: int = 16
    arrival_salt: int = 0

    def __post_init__(self) -> None:
        check_integer("engine", "flit_bytes", self.flit_bytes, 1, MAX_FLIT_BYTES)
        check_integer("engine", "packet_flits", self.packet_flits, 1, MAX_PACKET_FLITS)
        check_integer("engine", "arrival_salt", self.arrival_salt, 0, MAX_SALT)

    @property
    def packet_bytes(self) -> int:
        return self.flit_bytes * self.packet_flits


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One first-class resource: a link, a port, a memory channel, a compute unit.

    ``buffer_flits`` is the space *behind* the server, per virtual channel, where packets wait for
    the next one. ``docs/engine.md`` section 2 has the timing law.
    """

    name: str
    bytes_per_us: int | None = None
    latency_ps: int = 0
    buffer_flits: int | None = None
    credit_ps: int = 0
    arbitration: Arbitration = Arbitration.FIFO
    reassemble: bool = False
    service: Service | None = None

    def __post_init__(self) -> None:
        where = f"server {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            fix = "give it a path such as 'sip0.cube3.dma'"
            raise EngineError("server", f"the name {self.name!r}", "a text that is not empty", fix)
        if self.bytes_per_us is not None:
            check_integer(where, "bytes_per_us", self.bytes_per_us, 1, MAX_PS)
        check_integer(where, "latency_ps", self.latency_ps, 0, MAX_PS)
        if self.buffer_flits is not None:
            check_integer(where, "buffer_flits", self.buffer_flits, 1, MAX_PS)
        check_integer(where, "credit_ps", self.credit_ps, 0, MAX_PS)
        if not isinstance(self.arbitration, Arbitration):
            found = f"arbitration {self.arbitration!r}"
            raise EngineError(where, found, "an Arbitration", "use Arbitration.FIFO or ROUND_ROBIN")
        if type(self.reassemble) is not bool:
            found = f"reassemble = {self.reassemble!r}"
            raise EngineError(where, found, "a bool", "pass True or False")
        if self.service is not None and not callable(getattr(self.service, "service", None)):
            found = f"{type(self.service).__name__} without a service method"
            fix = "write service(packet, now_ps) -> (hold_ps, latency_ps)"
            raise EngineError(where, found, "a Python server", fix)

    @property
    def takes_whole_packets(self) -> bool:
        return self.reassemble or self.bytes_per_us is None


def check_integer(where: str, field: str, value: object, low: int, high: int) -> None:
    """Refuse what is not an int (a bool or a NumPy scalar is none) in low..high."""
    if type(value) is not int or not low <= value <= high:
        raise EngineError(where, *integer_words(field, value, low, high))


def checked_ids(ids: Sequence[int]) -> tuple[int, ...]:
    """Return the ids of earlier tasks as a tuple; refuse anything else."""
    if not isinstance(ids, Sequence):
        raise EngineError("submit", f"after = {ids!r}", "a sequence of ids", "put it in a tuple")
    for task_id in ids:
        check_integer("submit", "after", task_id, 0, MAX_PS)
    return tuple(ids)


def integer_words(field: str, value: object, low: int, high: int) -> tuple[str, str, str]:
    """Found, expected and fix for a value that ``check_integer`` refuses."""
    expected = f"an int in {low}..{high}"
    if type(value) is not int:
        expected += " (no bool, no NumPy scalar)"
    return f"{field} = {value!r}", expected, integer_fix(value) or f"correct {field}"


def integer_fix(value: object) -> str:
    """What to do with a value that only has to become an int; else empty."""
    return "pass int(value)" if type(value) is not int and hasattr(value, "__index__") else ""


CoreService = Callable[[int, int, int, int, int, int, int, int], tuple[int, int]]
"""A checked service: packet, task, position, flits, bytes, tag, offset, now -> hold, latency."""


OPTION = "--limit"
MAX_LIMIT = 2**61  # so that a sum of two limits fits int64
_FIELD_OF = {"time": "time_ps"}  # what a user writes, where it is not the field's name

_ADVICE = {
    "programs": "let each program do more",
    "commands": "let the program end",
    "events": "let programs end, or move less",
    "time": "let programs end",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a context may do; beyond a limit its run ends with a LimitError.

    The defaults are far above what the ready programs need (ADR 0032).

    >>> Limits(commands=10**8).commands
    100000000
    """

    programs: int = 10**7  # of one launch
    commands: int = 10**7  # that one program issues
    events: int = 10**10  # of the engine, since the context was made
    time_ps: int = 1000 * PS_PER_S  # simulated, since the context was made

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if type(value) is not int or not 1 <= value <= MAX_LIMIT:
                expected = f"a whole number from 1 to {MAX_LIMIT}"
                raise RequestError("Limits", f"{each.name}={value!r}", expected, "correct it")


def parse_limits(texts: Iterable[str]) -> Limits:
    """Return the default limits, changed by texts such as ``commands=100000`` or ``time=2 s``.

    >>> parse_limits(["events=5000", "time=3 us"]).time_ps
    3000000
    """
    changes: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        field = _FIELD_OF.get(name, name)
        if not equals or field not in _named_fields().values():
            expected = "NAME=VALUE with a name of " + ", ".join(_named_fields())
            raise UsageError(OPTION, repr(text), expected, "write it like --limit commands=100000")
        if field in changes:
            raise UsageError(OPTION, f"{name} twice", "it once", "leave one out")
        changes[field] = _parse_value(name, value)
    return replace(Limits(), **changes)


def _named_fields() -> dict[str, str]:
    """Return the fields of ``Limits`` by what a user calls them."""
    names = {field: name for name, field in _FIELD_OF.items()}
    return {names.get(each.name, each.name): each.name for each in fields(Limits)}


def _parse_value(name: str, text: str) -> int:
    expected = f"a whole number from 1 to {MAX_LIMIT}"
    try:
        if name == "time":
            expected = "a time with a unit, like 2 ms or 10 s"
            value = parse_ps(text)
        else:
            value = int(text)
    except (ValueError, UnitError):
        value = 0
    if not 1 <= value <= MAX_LIMIT:
        raise UsageError(OPTION, f"{name}={text}", expected, "correct the value")
    return value


def limit_error(where: str, found: str, name: str, limit: int) -> LimitError:
    """Return the error of something that goes beyond a limit, with how to raise the limit.

    ``name`` is what a user calls the limit; of ``time``, ``limit`` is in ps.
    """
    field = _FIELD_OF.get(name, name)
    unit = " ps" if name == "time" else ""
    fix = (
        f"{_ADVICE[name]}, or raise the limit: tilewright run {OPTION} {name}=..., "
        f"RuntimeContext(limits=Limits({field}=...))"
    )
    return LimitError(where, found, f"at most {limit}{unit}, the limit on {name}", fix)
