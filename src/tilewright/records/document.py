"""The base of every JSON document that tilewright writes: field types, versions, failures."""

import platform
from importlib import metadata
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat

from tilewright.errors import TilewrightError

JsonScalar = str | int | float | bool | None
"""What a command-line argument may be in a record."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
PageNumber = Annotated[int, Field(ge=0, lt=2**31)]
Seconds = NonNegativeFloat
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StateAdvanceName = Literal["vortex", "every_block"]


class Document(BaseModel):
    """Frozen and strict: unknown keys, converted types, NaN and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def of(cls, *results: object, **rest: Any) -> Self:
        """Take the fields that results have under the same names; ``rest`` are the others.

        What a document is itself (``kind``, ``schema_version``) is never taken.

        >>> from tilewright.errors import SpecError
        >>> Failure.of(SpecError("a", "b", "c", "d"), type="SpecError").fix
        'd'
        """
        found = {
            name: getattr(result, name)
            for result in reversed(results)
            for name in cls.model_fields.keys() - rest.keys() - {"kind", "schema_version"}
            if hasattr(result, name)
        }
        return cls(**found, **rest)


class Versions(Document):
    """What must be equal for two records to be comparable."""

    tilewright: str
    python: str
    numpy: str
    greenlet: str
    simpy: str | None = None  # the peer of the benchmarks; None: not installed
    engine: str  # which of the engines ran: "reference", "native", or both


class SimulatedDocument(Document):
    """What was simulated on a machine, and whether all that was asked of it holds."""

    ok: bool
    versions: Versions
    machine: str
    machine_hash: Sha256


def installed_version(distribution: str = "tilewright") -> str:
    return metadata.version(distribution)


def installed_versions(*, engine: str) -> Versions:
    """The versions of this process; ``engine`` is what ran in it."""
    return Versions(
        tilewright=installed_version(),
        python=platform.python_version(),
        numpy=installed_version("numpy"),
        greenlet=installed_version("greenlet"),
        simpy=_version_if_installed("simpy"),
        engine=engine,
    )


def _version_if_installed(distribution: str) -> str | None:
    try:
        return installed_version(distribution)
    except metadata.PackageNotFoundError:
        return None


class Failure(Document):
    """The four parts of an error and the name of its class."""

    type: str
    where: str
    found: str
    expected: str
    fix: str


class FailureRecord(Document):
    """The whole document. ``problems`` has each mistake apart, where ``error`` joins several."""

    ok: Literal[False] = False
    error: Failure
    problems: tuple[Failure, ...]


def describe_failure(error: TilewrightError) -> FailureRecord:
    """An error as a document.

    >>> from tilewright.errors import SpecError
    >>> describe_failure(SpecError("cube.pes", "0", "at least 1", "add a PE")).error.type
    'SpecError'
    """
    problems = tuple(_failure(problem) for problem in error.problems)
    return FailureRecord(error=_failure(error), problems=problems)


def _failure(error: TilewrightError) -> Failure:
    return Failure(
        type=type(error).__name__,
        where=_sayable(error.where),
        found=_sayable(error.found),
        expected=_sayable(error.expected),
        fix=_sayable(error.fix),
    )


def _sayable(text: str) -> str:
    """Return a text with escapes for what UTF-8 cannot say: a name may have half a pair in it."""
    return text.encode("utf-8", "backslashreplace").decode()
