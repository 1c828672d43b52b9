"""Runs a Typer app: what goes to which stream, and with which status the process ends."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum

import typer
from rich.console import Console
from typer.exceptions import TyperException

from tilewright.cli.outcome import Outcome
from tilewright.errors import InternalError, InterruptError, TilewrightError, UsageError
from tilewright.records import Document, canonical_json, describe_failure

__all__ = ("ExitStatus", "note", "run_app")

PROGRAM = "tilewright"


class ExitStatus(IntEnum):
    """What the process tells its caller."""

    OK = 0
    CHECK_FAILED = 1
    WRONG_INPUT = 2
    INTERRUPTED = 130


def run_app(app: typer.Typer, arguments: Sequence[str]) -> ExitStatus:
    """Run one command line to its end, errors included. A command returns an ``Outcome``."""
    as_json = "--json" in arguments
    try:
        with _stray_output_on_stderr(as_json):
            result = _invoke(app, arguments)
        return _present(result, as_json=as_json)
    except KeyboardInterrupt:
        return _fail(_interruption(), as_json=as_json)
    except TilewrightError as error:
        return _fail(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001  # the outermost border: a bug is reported, not hidden
        traceback.print_exc()
        return _fail(_bug(error), as_json=as_json)


def note(message: str) -> None:
    """Tell the user something while a command runs; results alone go to standard output."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def _stray_output_on_stderr(as_json: bool) -> Iterator[None]:
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def _invoke(app: typer.Typer, arguments: Sequence[str]) -> object:
    command = typer.main.get_command(app)
    try:
        result = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        raise _usage_error(error) from error
    if result == ExitStatus.INTERRUPTED:  # what Typer makes of a KeyboardInterrupt
        raise _interruption()
    return result


def _present(result: object, *, as_json: bool) -> ExitStatus:
    match result:
        case Outcome(record=record, view=view, passed=passed):
            if as_json:
                _print_document(record)
            else:
                Console().print(view)
            return ExitStatus.OK if passed else ExitStatus.CHECK_FAILED
        case ExitStatus.OK:  # --help and --version have printed what they have to say
            return ExitStatus.OK
        case _:
            raise InternalError(PROGRAM, repr(result), "an Outcome", "return one from the command")


def _fail(error: TilewrightError, *, as_json: bool) -> ExitStatus:
    if as_json:
        _print_document(describe_failure(error))
    elif isinstance(error, InterruptError):
        note(f"{error.found}; {error.fix}")
    else:
        note(_readable(error))
    match error:
        case InterruptError():
            return ExitStatus.INTERRUPTED
        case InternalError():
            return ExitStatus.CHECK_FAILED
        case _:
            return ExitStatus.WRONG_INPUT


def _print_document(document: Document) -> None:
    print(canonical_json(document).decode(), flush=True)


def _readable(error: TilewrightError) -> str:
    rows = (("found", error.found), ("expected", error.expected), ("to do", error.fix))
    lines = [f"error: {error.where}"]
    lines += [f"  {name:<9} {_indented(text)}" for name, text in rows]
    if isinstance(error, InternalError):
        lines.append("This is a bug in tilewright, not in your input.")
        lines.append("Please report it with these lines, your command and `tilewright --version`.")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * 12)


def _usage_error(error: TyperException) -> UsageError:
    place = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
    found = error.format_message().rstrip(".")
    return UsageError("command line", found, "a known command line", f"run: {place} --help")


def _interruption() -> InterruptError:
    return InterruptError(
        PROGRAM, "interrupted", "the command to finish", "nothing half-done is left"
    )


def _bug(error: Exception) -> InternalError:
    found = f"{type(error).__name__}: {error}"
    return InternalError(PROGRAM, found, "no unhandled exception", "see the traceback")
