"""How far a run may go before it is stopped, so that an endless program ends with an error."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from tilewright.errors import LimitError, RequestError, UnitError, UsageError
from tilewright.units import PS_PER_S, parse_ps

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
