"""Every exception of tilewright.

TilewrightError           where, found, expected, fix
├── SpecError             a file or value that describes something is wrong
├── UnitError             a time, size or rate that is no exact integer quantity
├── EngineError           wrong use of the event engine
│   ├── DeadlockError     events ran out while someone waits
│   ├── ServerError       a server written in Python raised or returned nonsense
│   └── TimeLimitError    a time beyond int64 picoseconds
├── RecordError           a record that cannot be written, read or trusted
├── RegistryError         two owners for one name, or no owner at all
├── MissingExtraError     a library of an optional extra is not installed
├── UsageError            a command line that names no known command or option
├── InterruptError        the user stopped the command
└── InternalError         a broken rule of our own, with the state
"""

__all__ = (
    "DeadlockError",
    "EngineError",
    "InternalError",
    "InterruptError",
    "MissingExtraError",
    "RecordError",
    "RegistryError",
    "ServerError",
    "SpecError",
    "TilewrightError",
    "TimeLimitError",
    "UnitError",
    "UsageError",
)


class TilewrightError(Exception):
    """Says where, what was found, what was expected and what to do.

    >>> print(TilewrightError("cube.hbm", "0 channels", "at least one", "set pseudo_channels"))
    cube.hbm: found 0 channels, expected at least one; set pseudo_channels
    """

    def __init__(self, where: str, found: str, expected: str, fix: str) -> None:
        super().__init__(where, found, expected, fix)  # all four in args, so it pickles
        self.where = where
        self.found = found
        self.expected = expected
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}; {self.fix}"


class SpecError(TilewrightError):
    """A file or value that describes something is wrong."""


class UnitError(TilewrightError):
    """A time, size or rate that is no exact integer quantity."""


class EngineError(TilewrightError):
    """Wrong use of the event engine."""


class DeadlockError(EngineError):
    """Events ran out while someone waits."""

    def __init__(
        self,
        where: str,
        found: str,
        expected: str,
        fix: str,
        waiters: tuple[str, ...] = (),
        cycle: tuple[str, ...] = (),
    ) -> None:
        super().__init__(where, found, expected, fix)
        self.args = (where, found, expected, fix, waiters, cycle)
        self.waiters = waiters
        self.cycle = cycle


class ServerError(EngineError):
    """A server written in Python raised or returned nonsense."""


class TimeLimitError(EngineError):
    """A time beyond int64 picoseconds."""


class RecordError(TilewrightError):
    """A record that cannot be written, read or trusted."""


class RegistryError(TilewrightError):
    """Two owners for one name, or no owner at all."""


class MissingExtraError(TilewrightError):
    """A library of an optional extra is not installed; names the extra."""

    def __init__(self, where: str, library: str, extra: str) -> None:
        fix = f"run: pip install --editable '.[{extra}]' in the checkout"
        if extra == "bench":
            fix += ", or make bench"
        super().__init__(where, f"no library {library!r}", f"the extra {extra!r} installed", fix)
        self.args = (where, library, extra)
        self.library = library
        self.extra = extra


class UsageError(TilewrightError):
    """A command line that names no known command or option."""


class InterruptError(TilewrightError):
    """The user stopped the command."""


class InternalError(TilewrightError):
    """A broken rule of our own. ``found`` carries the state that breaks it."""
