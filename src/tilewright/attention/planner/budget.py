"""Budgets: from the length of a row, its layer, head and step to the blocks it may read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from tilewright.errors import PlanError


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


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What is known of a row before anything is scored."""

    num_blocks: int
    num_tokens: int
    layer: int = 0
    head: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class Reserved:
    """Blocks that every row reads, on top of what it selects."""

    first: int = 1
    last: int = 1  # at least the one that is being written

    def __post_init__(self) -> None:
        if self.first < 0 or self.last < 1:
            found = f"{self.first} first and {self.last} last blocks"
            raise PlanError("reserved", found, "first >= 0 and last >= 1", "change them")

    @property
    def total(self) -> int:
        return self.first + self.last


class Budget(Protocol):
    """Anything with this method is a budget; users may write their own."""

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        """Blocks of the row in all, reserved ones included. May exceed the row."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultBudget:
    """``max(topk + first + last, floor(num_blocks * ratio))`` blocks.

    >>> DefaultBudget(topk=30).bounds(RowFacts(100, 1600), Reserved(1, 1)).at_most
    32
    >>> DefaultBudget(topk=30, ratio=0.5).bounds(RowFacts(100, 1600), Reserved(1, 1)).at_most
    50
    """

    topk: int = 30
    ratio: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.topk, int) or isinstance(self.topk, bool) or self.topk < 1:
            raise PlanError("budget.topk", repr(self.topk), "an int of 1 or more", "raise it")
        if not 0.0 <= self.ratio <= 1.0:
            raise PlanError("budget.ratio", repr(self.ratio), "a share in 0..1", "change it")

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        blocks = max(self.topk + reserved.total, math.floor(facts.num_blocks * self.ratio))
        return RowBudget(blocks, blocks)


@dataclass(frozen=True, slots=True)
class PerLayer:
    """Its own budget for each listed layer, one for the others."""

    budgets: Mapping[int, Budget]
    default: Budget = field(default_factory=DefaultBudget)

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        return self.budgets.get(facts.layer, self.default).bounds(facts, reserved)


@dataclass(frozen=True, slots=True)
class PerHead:
    """Its own budget for each listed KV head, one for the others."""

    budgets: Mapping[int, Budget]
    default: Budget = field(default_factory=DefaultBudget)

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        return self.budgets.get(facts.head, self.default).bounds(facts, reserved)


def _between(
    at_least: int, at_most: int | None, rule: Rule, facts: RowFacts, reserved: Reserved
) -> RowBudget:
    """Return what a rule over scores decides between two counts of blocks."""
    most = facts.num_blocks if at_most is None else at_most
    return RowBudget(min(max(at_least, reserved.total), most), most, rule)


@dataclass(frozen=True, slots=True)
class TopPBudget:
    """Blocks by mass: the fewest that reach ``p`` of the candidates' softmax over scores."""

    p: float
    at_most: int | None = None  # blocks, reserved ones included; None: the whole row
    at_least: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.p <= 1.0:
            raise PlanError("budget.p", repr(self.p), "a share in (0, 1]", "change it")

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        return _between(self.at_least, self.at_most, MassRule(self.p), facts, reserved)


@dataclass(frozen=True, slots=True)
class ThresholdBudget:
    """Every candidate that scores at least ``threshold``."""

    threshold: float
    at_most: int | None = None  # blocks, reserved ones included; None: the whole row
    at_least: int = 1

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise PlanError("budget.threshold", "nan", "a number", "change it")

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        return _between(self.at_least, self.at_most, ScoreRule(self.threshold), facts, reserved)


@dataclass(frozen=True, slots=True)
class Capped:
    """Another budget, held between two counts of blocks (reserved ones included)."""

    budget: Budget
    at_most: int
    at_least: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.at_least <= self.at_most:
            found = f"{self.at_least} .. {self.at_most}"
            raise PlanError("budget.cap", found, "0 <= at_least <= at_most", "change them")

    def bounds(self, facts: RowFacts, reserved: Reserved) -> RowBudget:
        inner = self.budget.bounds(facts, reserved)
        most = max(min(inner.at_most, self.at_most), self.at_least)
        if isinstance(inner.rule, Exactly):
            return RowBudget(most, most)
        return replace(inner, at_least=min(max(inner.at_least, self.at_least), most), at_most=most)
