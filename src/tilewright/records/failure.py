"""What a command prints under ``--json`` instead of its result when it fails."""

from typing import Literal

from tilewright.errors import TilewrightError
from tilewright.records.document import Document


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
