"""Runs a command line in this process and holds it to the rules of all command lines."""

import io
import json
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.generator import FindingError
from tilewright.cli.main import main

__all__ = ("Ended", "check_left_files", "run_command")

STATUSES = (0, 1, 2)
BUG = "This is a bug in tilewright"
TRACEBACK = "Traceback (most recent call last)"
OURS = ".tilewright-*"


@dataclass(frozen=True, slots=True)
class Ended:
    """A command line that has ended by the rules."""

    status: int
    output: str
    errors: str


def run_command(*arguments: str) -> Ended:
    """Run a command line; a traceback, a wrong status, broken JSON or a file left is a finding."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = main(list(arguments))
    ended = Ended(status, output.getvalue(), errors.getvalue())
    _check(ended, arguments)
    check_left_files(arguments)
    return ended


def check_left_files(arguments: Sequence[str]) -> None:
    """Refuse unfinished files and locks in the working directory."""
    left = sorted(str(file) for file in Path().rglob(OURS))
    if left:
        raise FindingError(f"{_line(arguments)}\nleft behind: {', '.join(left)}")


def _check(ended: Ended, arguments: Sequence[str]) -> None:
    line = _line(arguments)
    if TRACEBACK in ended.errors or BUG in ended.errors:
        raise FindingError(f"{line}\n{ended.errors}")
    if ended.status not in STATUSES:
        raise FindingError(f"{line}\nexit status {ended.status}\n{ended.errors}")
    if "--json" in arguments and "--help" not in arguments:
        _check_document(ended, line)
    elif ended.status == STATUSES[-1] and not ended.errors.strip() and not ended.output.strip():
        raise FindingError(f"{line}\nrefused without a word")


def _check_document(ended: Ended, line: str) -> None:
    if not ended.output.startswith("{"):  # help, a version or a text that was asked for
        return
    try:
        document = json.loads(ended.output)
    except ValueError as error:
        raise FindingError(f"{line}\nno JSON document: {error}\n{ended.output[:500]}") from error
    if document.get("error", {}).get("type") == "InternalError":
        raise FindingError(f"{line}\n{document['error']}\n{ended.errors}")


def _line(arguments: Sequence[str]) -> str:
    words = [word if len(word) <= 200 else f"{word[:200]}..." for word in arguments]
    return f"$ tilewright {shlex.join(words)}".encode("utf-8", "backslashreplace").decode()
