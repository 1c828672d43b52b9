"""What a page of decode steps shows, as plain values: no record of a run, no device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.machine.build import Machine
from tilewright.records.phases import PhaseSpread

TOKENS_PER_K = 1024


@dataclass(frozen=True, slots=True)
class FlowQuality:
    """What a flow keeps of dense attention; means over rows and query heads."""

    mass: float  # share of the dense softmax on the pages that were read
    output_error: float  # norm of the difference over the norm of the dense output
    needles_found: int
    needles_planted: int


@dataclass(frozen=True, slots=True)
class ShownStage:
    """A part of a step. The latencies of a step's stages add up to its own."""

    name: str
    latency_ps: int
    num_bytes: int  # as the controllers of memories counted them
    ideal_bytes: int


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One decode step of a flow over contexts of so many tokens."""

    flow: str
    context: int
    latency_ps: int  # which the stages add up to
    mean_ps: int  # over refresh phases
    speedup: float  # over dense attention of the same context
    num_bytes: int
    bottleneck: str
    stages: tuple[ShownStage, ...]
    phases: PhaseSpread | None = None  # that mean_ps is the mean of; None: nothing refreshes

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
    quality: Mapping[str, FlowQuality]  # by flow
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
