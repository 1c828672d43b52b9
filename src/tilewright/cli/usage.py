"""A command line that the parser refused, told in four parts."""

import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from tilewright.errors import UsageError

PROGRAM = "tilewright"

AnyCommand = TyperCommand | TyperGroup

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
