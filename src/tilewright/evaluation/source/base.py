"""What flows are compared on: a source draws cases, each from its own seed."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilewright.attention.graph import FlowKind, Geometry
from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.errors import UsageError
from tilewright.evaluation.stream import Stream
from tilewright.evaluation.words import Words
from tilewright.records.attention.compare import SourceFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """Sizes of the cases that a source draws."""

    context: int  # tokens that are taken in, densely, before anything is asked
    steps: int  # decoded tokens of a case, at most
    cases: int
    seed: int = 0
    page_size: int = 16
    reserved: Reserved = field(default_factory=Reserved)
    state_advance: StateAdvance = StateAdvance.VORTEX
    kind: FlowKind = FlowKind.GQA  # of drawn keys; a model has its own


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One sequence. Without a model there are no words."""

    stream: Stream
    words: Words | None


class Source(Protocol):
    """Cases of equal sizes. The same spec and index draw the same case."""

    @property
    def figures(self) -> SourceFigures: ...

    @property
    def geometry(self) -> Geometry:
        """What flows are traced for."""

    @property
    def num_layers(self) -> int: ...

    @property
    def num_kv_heads(self) -> int: ...

    def draw(self, index: int, *, kept_queries: int) -> Case:
        """``kept_queries`` of the context's last tokens can be observed by flows."""


def generator_of(spec: SourceSpec, index: int) -> np.random.Generator:
    """Of one case: other cases do not move it."""
    return np.random.default_rng([spec.seed, index])


def check_fits(name: str, spec: SourceSpec, most: int) -> None:
    """Refuse a case that is longer than what a model was made for."""
    if spec.context + spec.steps > most:
        found = f"{spec.context} tokens of context and {spec.steps} to decode"
        raise UsageError(f"source {name}", found, f"{most} at most in all", "lower --context")
