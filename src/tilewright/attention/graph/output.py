"""What the attention step does with a selection: the root of the indexer side."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tilewright.attention.graph.node import Node


class EstimateOver(StrEnum):
    """Which pages enter attention by their estimate."""

    UNSELECTED = "unselected"
    ALL = "all"


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """Pages that enter by a summary of ``r`` entries instead of by their tokens.

    Entry i of page s adds ``exp(logits[s, i, h])`` to the softmax denominator of query head h and
    ``exp(logits[s, i, h]) * values[s, i, :]`` to its numerator. Logits are complete: scaled, with
    the logarithm of the number of tokens that the entry stands for.
    """

    logits: Node  # [S, r, H]
    values: Node  # [S, r, value_dim]
    over: EstimateOver = EstimateOver.UNSELECTED


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """One softmax attention: exact over the selected pages, and an estimate of others.

    Without a selection only the estimate enters. ``gate`` is [1, H, 1], or [1, 1, 1] for all heads.
    """

    selection: Node | None  # bool [S, 1, 1], or [S, 1, H] for a selection per query head
    gate: Node | None = None
    estimate: Estimate | None = None

    def nodes(self) -> Iterator[Node]:
        if self.selection is not None:
            yield self.selection
        if self.gate is not None:
            yield self.gate
        if self.estimate is not None:
            yield self.estimate.logits
            yield self.estimate.values


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """The result of a step is the sum of its branches, each times its gate.

    The reserved pages of the plan are part of every selection, whatever its value says there.
    """

    branches: tuple[Branch, ...]
    source: str = ""

    def nodes(self) -> Iterator[Node]:
        for branch in self.branches:
            yield from branch.nodes()
