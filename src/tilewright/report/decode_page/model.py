"""What a page of decode steps shows: no device, no run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.machine.build import Machine
from tilewright.records.demo import DemoQuality, DemoStep

TOKENS_PER_K = 1024


class ShownStep(DemoStep):
    """One decode step of a flow, under the flow's label."""

    flow: str

    @property
    def label(self) -> str:
        return f"{self.flow}, {context_text(self.context)}"


@dataclass(frozen=True, slots=True)
class ShownUsage:
    """How much of a step each link, unit and memory was in use; what is not named was idle."""

    flow: str
    context: int
    shares: Mapping[str, float]

    @property
    def label(self) -> str:
        return f"{self.flow}, {context_text(self.context)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePage:
    """All that stands on the page. Flows are in one order everywhere; the first one is dense."""

    title: str
    meaning: Sequence[str]  # sentences, the most important first
    machine: Machine
    quality: Mapping[str, DemoQuality]  # by flow
    quality_note: str  # on what it was measured
    steps: Sequence[ShownStep]
    steps_note: str
    usages: Sequence[ShownUsage]
    facts: Mapping[str, str]  # seed, versions, hashes, ...
    commands: Mapping[str, str] = field(default_factory=dict)  # what to try next, and why

    @property
    def flows(self) -> tuple[str, ...]:
        return tuple(self.quality)

    def step(self, flow: str, context: int) -> ShownStep:
        """Every flow has a step for every context."""
        return next(s for s in self.steps if (s.flow, s.context) == (flow, context))

    @property
    def contexts(self) -> tuple[int, ...]:
        return tuple(sorted({step.context for step in self.steps}))


def context_text(tokens: int) -> str:
    """
    >>> context_text(131_072), context_text(1000)
    ('128K', '1000')
    """
    whole, rest = divmod(tokens, TOKENS_PER_K)
    return str(tokens) if rest or not whole else f"{whole}K"
