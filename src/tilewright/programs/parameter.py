"""Parameters of a program that `run` starts: read off its signature, set by text."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tilewright.errors import BenchError

ParameterValue = bool | int | float | str

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class BenchParameter:
    """One parameter with its only default; ``choices`` is empty unless the values are listed."""

    name: str
    kind: type[ParameterValue]
    default: ParameterValue
    help: str = ""
    choices: tuple[ParameterValue, ...] = ()

    @property
    def expected(self) -> str:
        """For people: what may be given."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        words = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
        return words[self.kind]

    def parse(self, text: str, *, where: str) -> ParameterValue:
        """The value that a text stands for.

        >>> BenchParameter("m", int, 128).parse("64", where="qkv_gemm")
        64
        """
        try:
            value = _TRUTH[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            raise self._refusal(text, where) from None
        if self.choices and value not in self.choices:
            raise self._refusal(text, where)
        return value

    def _refusal(self, text: str, where: str) -> BenchError:
        found = f"{self.name}={text}"
        return BenchError(where, found, self.expected, f"write it like {self.name}={self.default}")


def parameters_of(run: Callable[..., Any], *, where: str) -> tuple[BenchParameter, ...]:
    """What comes after ``torch`` in the signature of ``run``, in its order.

    The type is the annotation's or the default's; a text in ``Annotated`` is the help.
    """
    hints = get_type_hints(run, include_extras=True)
    named = list(inspect.signature(run).parameters.values())[1:]
    return tuple(_parameter(parameter, hints.get(parameter.name), where) for parameter in named)


def parse_parameters(
    parameters: tuple[BenchParameter, ...], texts: Mapping[str, str], *, where: str
) -> dict[str, ParameterValue]:
    """All parameters by name: as the texts say, else their defaults."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in texts:
        if name not in known:
            found = f"a parameter {name!r}"
            expected = "one of " + ", ".join(known) if known else "none: it takes no parameters"
            raise BenchError(where, found, expected, "correct its name, or leave it out")
    return {
        name: parameter.parse(texts[name], where=where) if name in texts else parameter.default
        for name, parameter in known.items()
    }


def _parameter(parameter: inspect.Parameter, hint: Any, where: str) -> BenchParameter:
    name, default = parameter.name, parameter.default
    by_name = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if default is parameter.empty or not by_name:
        found = f"a parameter {name!r} without a default"
        fix = "give it a default, so that it can be left out"
        raise BenchError(where, found, "only parameters with defaults after the first", fix)
    text, plain = _help_and_type(hint)
    choices: tuple[ParameterValue, ...] = ()
    if get_origin(plain) is Literal:
        choices = get_args(plain)
    kind = type(default)
    declared = {type(choice) for choice in choices} if choices else {plain or kind}
    if kind not in (bool, int, float, str) or declared != {kind}:
        found = f"a parameter {name!r} of type {plain or kind} with the default {default!r}"
        expected = "int, float, bool, str or a Literal of them, and a default of that type"
        raise BenchError(where, found, expected, "correct its annotation or its default")
    return BenchParameter(name, kind, default, text, choices)


def _help_and_type(hint: Any) -> tuple[str, Any]:
    if get_origin(hint) is not Annotated:
        return "", hint
    plain, *notes = get_args(hint)
    return next((note for note in notes if isinstance(note, str)), ""), plain
