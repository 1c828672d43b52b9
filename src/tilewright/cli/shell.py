"""Runs a command line: what goes to which stream, and with which status the process ends."""

import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from tilewright.cli.group import load
from tilewright.cli.output import PROGRAM, Output, note
from tilewright.errors import (
    HostMemoryError,
    InternalError,
    InterruptError,
    TilewrightError,
    UsageError,
)

if TYPE_CHECKING:
    from tilewright.cli.outcome import Outcome


AnyCommand = TyperCommand | TyperGroup
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
        found = f"no memory left ({error})" if str(error) else "no memory left"
        expected, fix = (
            "sizes that this computer has memory for",
            "ask for smaller sizes, or free memory",
        )
        return _fail(HostMemoryError(PROGRAM, found, expected, fix), as_json=as_json)
    except Exception as error:  # noqa: BLE001  # the outermost border: a bug is reported, not hidden
        note(traceback.format_exc().rstrip())
        found = f"{type(error).__name__}: {error}"
        bug = InternalError(PROGRAM, found, "no unhandled exception", "see the traceback")
        return _fail(bug, as_json=as_json)


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
        if INSTALL_COMPLETION not in arguments:
            raise
        shown = f"run: {PROGRAM} --show-completion"
        fix = f"{shown}, and put what it prints where your shell reads it"
        expected = "a home that can be written to"
        raise UsageError(INSTALL_COMPLETION, str(error), expected, fix) from error
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
            outcome: Outcome = load("outcome", "print_outcome")(result, as_json=as_json)
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
    lines += [f"  {name:<9} {text}".replace("\n", "\n" + " " * 12) for name, text in rows]
    if isinstance(error, InternalError):
        lines.append("This is a bug in tilewright, not in your input.")
        lines.append("Please report it with these lines, your command and `tilewright --version`.")
    return "\n".join(lines)


def _interruption() -> InterruptError:
    return InterruptError(
        PROGRAM, "interrupted", "the command to finish", "nothing half-done is left"
    )


# By name: the parser keeps these classes to itself.
_EXPECTED = {
    "MissingParameter": "every argument that the command needs",
    "NoSuchOption": "an option that the command has",
    "BadOptionUsage": "the option in the form that the help shows",
}


def usage_error(error: TyperException, root: AnyCommand, arguments: Sequence[str]) -> UsageError:
    """What the parser says, what it takes instead, and whose help to read."""
    words, command = _command_of(error, root, arguments)
    found = _found(error, arguments)
    fix = f"run: {words} --help"
    if getattr(error, "option_name", None) == "--json" and _subcommands(command):
        rest = [word for word in arguments if word != "--json"]
        example = shlex.join([PROGRAM, *rest, "--json"]) if rest else f"{words} COMMAND --json"
        fix = f"put --json after the command: {example}"
    return UsageError("command line", found, _expected(error, command), fix)


def _found(error: TyperException, arguments: Sequence[str]) -> str:
    """The parser's words, but for a value that breaks a rule: then that value."""
    option = getattr(error, "param", None)
    if _rule(error) and not getattr(option, "multiple", True):
        for word, next_word in pairwise((*arguments, "")):
            name, equals, value = word.partition("=")
            if name in getattr(option, "opts", ()):
                return f"Invalid value for {name!r}: {(value if equals else next_word)!r}"
    return error.format_message().rstrip(".").replace("Value error, ", "")


def _rule(error: TyperException) -> str:
    """What the parser says that a value should be; nothing if it says something else."""
    _, should, rule = error.message.partition("Input should be ")
    _, choices, among = error.message.partition(" is not one of ")
    return (rule if should else f"one of {among}" if choices else "").rstrip(".")


def check_text(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text: no document could name them."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            found, fix = f"the argument {word[:80]!a}", "rename the file, or correct the word"
            raise UsageError("command line", found, "text in UTF-8", fix) from error


def check_no_repeats(root: AnyCommand, arguments: Sequence[str]) -> None:
    """Refuse an option of one value that is given twice: the parser would take the last one."""
    words, command = named_command(root, arguments)
    given = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    for option in getattr(command, "params", ()):
        names = [name for name in given if name in option.opts]
        if len(names) > 1 and not getattr(option, "multiple", True):
            fix = f"run: {words} --help"
            raise UsageError("command line", f"{names[0]} {len(names)} times", "it once", fix)


def _command_of(
    error: TyperException, root: AnyCommand, arguments: Sequence[str]
) -> tuple[str, object]:
    """The command that was being parsed; some errors of the parser do not tell."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return context.command_path, context.command
    return named_command(root, arguments)


def named_command(root: AnyCommand, arguments: Sequence[str]) -> tuple[str, Any]:
    """Return the words that name a command, and that command."""
    words: list[str] = [PROGRAM]
    command: Any = root
    for word in arguments:
        if word in _subcommands(command):
            words.append(word)
            _, command, _ = command.resolve_command(typer.Context(command), [word])
    return " ".join(words), command


def _expected(error: TyperException, command: object) -> str:
    kind = type(error).__name__
    if kind == "BadParameter":
        parameter = getattr(getattr(error, "param", None), "param_type_name", "option")
        rule = _rule(error)
        return f"a value that the {parameter} takes" + (f": {rule}" if rule else "")
    if kind == "UsageError" and _subcommands(command):
        return f"one of the commands: {', '.join(_subcommands(command))}"
    return _EXPECTED.get(kind, "a command line in the form that the help shows")


def _subcommands(command: object) -> dict[str, object]:
    return getattr(command, "commands", {})
