"""Runs a command line: what goes to which stream, and with which status the process ends."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO, cast

from typer.exceptions import TyperException

from tilewright.cli.group import load
from tilewright.cli.output import Output, note
from tilewright.cli.usage import PROGRAM, AnyCommand, check_no_repeats, check_text, usage_error
from tilewright.errors import (
    HostMemoryError,
    InternalError,
    InterruptError,
    TilewrightError,
    UsageError,
)

if TYPE_CHECKING:
    from tilewright.cli.outcome import Outcome

INSTALL_COMPLETION = "--install-completion"
NO_ARGUMENTS = "NoArgsIsHelpError"  # by name: the parser keeps this class to itself


class ExitStatus(IntEnum):
    """What the process tells its caller."""

    OK = 0
    CHECK_FAILED = 1
    WRONG_INPUT = 2
    INTERRUPTED = 130


def run_command(command: AnyCommand, arguments: Sequence[str]) -> ExitStatus:
    """Run one command line to its end, errors included. A command returns an ``Outcome``."""
    output = Output(sys.stdout)
    with redirect_stdout(cast(TextIO, output)):
        status = _run(command, arguments, as_json="--json" in arguments)
    output.flush()
    if output.failure is None:
        return status
    note(f"error: found standard output that cannot be written ({output.failure})")
    return ExitStatus.WRONG_INPUT


def _run(command: AnyCommand, arguments: Sequence[str], *, as_json: bool) -> ExitStatus:
    try:
        with _stray_output_on_stderr(as_json):
            result = _invoke(command, arguments)
        return _present(result, as_json=as_json)
    except KeyboardInterrupt:
        return _fail(_interruption(), as_json=as_json)
    except TilewrightError as error:
        return _fail(error, as_json=as_json)
    except MemoryError as error:
        return _fail(_too_large(error), as_json=as_json)
    except Exception as error:  # noqa: BLE001  # the outermost border: a bug is reported, not hidden
        note(traceback.format_exc().rstrip())
        return _fail(_bug(error), as_json=as_json)


@contextmanager
def _stray_output_on_stderr(as_json: bool) -> Iterator[None]:
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def _invoke(command: AnyCommand, arguments: Sequence[str]) -> object:
    check_text(arguments)
    check_no_repeats(command, arguments)
    try:
        result = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        if type(error).__name__ == NO_ARGUMENTS:
            print(error.format_message())  # which is the help
            return ExitStatus.WRONG_INPUT
        raise usage_error(error, command, arguments) from error
    except OSError as error:
        if INSTALL_COMPLETION in arguments:
            raise _no_home(error) from error
        raise
    if result == ExitStatus.INTERRUPTED:  # what Typer makes of a KeyboardInterrupt
        raise _interruption()
    return result


def _present(result: object, *, as_json: bool) -> ExitStatus:
    match result:
        case ExitStatus.OK:  # only help or a version, printed
            return ExitStatus.OK
        case ExitStatus.CHECK_FAILED | ExitStatus.WRONG_INPUT:  # what was wrong, printed
            return ExitStatus.WRONG_INPUT
        case _:
            return _status(load("outcome", "print_outcome")(result, as_json=as_json))


def _status(outcome: "Outcome") -> ExitStatus:
    if outcome.is_interrupted:
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK if outcome.passed else ExitStatus.CHECK_FAILED


def _fail(error: TilewrightError, *, as_json: bool) -> ExitStatus:
    if as_json:
        load("outcome", "print_failure")(error)
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


def _interruption() -> InterruptError:
    return InterruptError(
        PROGRAM, "interrupted", "the command to finish", "nothing half-done is left"
    )


def _no_home(error: OSError) -> UsageError:
    fix = f"run: {PROGRAM} --show-completion, and put what it prints where your shell reads it"
    return UsageError(INSTALL_COMPLETION, str(error), "a home that can be written to", fix)


def _too_large(error: MemoryError) -> HostMemoryError:
    found = f"no memory left ({error})" if str(error) else "no memory left"
    fix = "ask for smaller sizes, or free memory"
    return HostMemoryError(PROGRAM, found, "sizes that this computer has memory for", fix)


def _bug(error: Exception) -> InternalError:
    found = f"{type(error).__name__}: {error}"
    return InternalError(PROGRAM, found, "no unhandled exception", "see the traceback")
