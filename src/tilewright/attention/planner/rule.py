"""How many blocks a row may read: a count that is known now, or a rule over scores with bounds."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Exactly:
    """As many blocks as the upper bound says, whatever the scores are."""


@dataclass(frozen=True, slots=True)
class MassRule:
    """The fewest blocks, best first, whose softmax mass over the candidates reaches ``p``."""

    p: float


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """Every candidate whose score is at least ``threshold``."""

    threshold: float


Rule: TypeAlias = Exactly | MassRule | ScoreRule


@dataclass(frozen=True, slots=True)
class RowBudget:
    """Bounds on the blocks of one row, reserved ones included."""

    at_least: int
    at_most: int
    rule: Rule = Exactly()
