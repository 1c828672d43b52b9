"""A rule that several fields of a spec break together, and how pydantic carries it out."""

from dataclasses import dataclass

from pydantic_core import PydanticCustomError

RULE = "rule"
"""The type of such an error among pydantic's."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """Paths are relative to the spec that has the rule."""

    path: str
    found: str
    expected: str
    fix: str
    related: tuple[str, ...] = ()  # the other fields that the rule reads

    def __str__(self) -> str:
        return f"{self.path}: found {self.found}, expected {self.expected}; {self.fix}"


def rule_error(broken: tuple[BrokenRule, ...]) -> PydanticCustomError:
    text = "\n".join(str(rule) for rule in broken)
    return PydanticCustomError(RULE, "{text}", {"text": text, "broken": broken})


def broken_rules_of(context: dict[str, object]) -> tuple[BrokenRule, ...]:
    """The rules inside a pydantic error of type `RULE`."""
    broken = context["broken"]
    return broken if isinstance(broken, tuple) else ()


def is_power_of_two(number: int) -> bool:
    """
    >>> [number for number in range(10) if is_power_of_two(number)]
    [1, 2, 4, 8]
    """
    return number > 0 and number & (number - 1) == 0
