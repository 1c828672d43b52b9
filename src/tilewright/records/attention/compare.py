"""What ``tilewright attention compare`` found: quality of flows, their bytes and their time."""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from tilewright.records.attention.decode import LatencySelection, MachineOfSteps, StepFigures
from tilewright.records.attention.run import PlanFigures
from tilewright.records.document import (
    Document,
    Fraction,
    PageNumber,
    Seconds,
    Sha256,
    Versions,
)

ROUNDING = 1e-6  # sums of rounded numbers may come out a little beyond their bounds
Share = Annotated[float, Field(ge=0.0, le=1.0 + ROUNDING)]
Sample = Annotated[float, Field(ge=-ROUNDING, le=1e6)]
Interval95 = tuple[float, float] | None
"""Where a mean lies with 95 % confidence, by Student's t; None: fewer than two samples."""


class TrialRecord(Document):
    """One flow at one budget in one case: samples, so that trials of several cases can be joined.

    A list over steps has one figure for each decoded token, a mean over heads and layers.
    """

    key: Sha256  # of all that the samples depend on
    flow: str
    budget: PositiveInt
    case: NonNegativeInt
    graph_hash: Sha256
    mass: Annotated[tuple[Share, ...], Field(min_length=1)]  # over steps
    head_mass: Annotated[tuple[Share, ...], Field(min_length=1)]
    """Over query heads of all layers, a mean over steps."""
    output_error: tuple[Sample, ...]
    oracle_ratio: tuple[Sample, ...]
    stability: tuple[Fraction, ...]  # one less than steps
    num_bytes: NonNegativeInt  # of all steps
    dense_bytes: PositiveInt
    kl: tuple[Sample, ...] | None  # None: the source has no model
    nll: tuple[Sample, ...] | None  # over tokens that were asked for
    dense_nll: tuple[Sample, ...] | None
    needle_hits: NonNegativeInt | None  # None: the source has no needles
    dense_needle_hits: NonNegativeInt | None
    needle_cases: NonNegativeInt | None
    first_pages: tuple[tuple[tuple[PageNumber, ...], ...], ...]
    """Of the first step: the pages that each layer read in each KV head."""

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        hits = (self.needle_hits or 0, self.dense_needle_hits or 0)
        if max(hits) > (self.needle_cases or 0):
            raise ValueError("more needle_hits than needle_cases")
        if len(self.nll or ()) != len(self.dense_nll or ()):
            raise ValueError("nll and dense_nll are of different tokens")
        return self


class LatencyRecord(Document):
    """The simulated latency of one step on one machine."""

    key: Sha256  # of all that it depends on
    latency_ps: PositiveInt
    selection: LatencySelection


class CompareState(Document):
    """Trials and latencies that are complete; a second run takes them from here."""

    kind: Literal["attention_compare_state"] = "attention_compare_state"
    schema_version: Literal[2] = 2
    trials: tuple[TrialRecord, ...]
    latencies: tuple[LatencyRecord, ...]


class SourceFigures(Document):
    """Where queries and keys come from."""

    name: str
    model: str | None
    model_hash: Sha256 | None  # of the file of weights
    text: str | None  # where the text ships
    text_hash: Sha256 | None


class CompareSizes(PlanFigures):
    """How it was measured."""

    context: PositiveInt  # tokens that were taken in before anything was asked
    page_size: PositiveInt
    cases: PositiveInt
    steps: PositiveInt  # decoded tokens of a case, at most
    dense_layers: NonNegativeInt
    threads: PositiveInt


class LatencyFigures(Document):
    """What latencies are of. ``step`` is the first decoded token of a case: the context and one.

    A request of the batch reads the pages that one sparse layer of the first case read there; the
    layers of requests lie at equal distances, so that a single request has the one in the middle.
    """

    machines: tuple[MachineOfSteps, ...]
    step: StepFigures
    tokens: PositiveInt  # of each request, the new one included


class QualityRow(Document):
    """A flow at a budget. Masses and errors are those of the queries of dense decoding.

    With machines there is a row for each of them, which differ in nothing but latencies.
    """

    flow: str
    graph_hash: Sha256
    source: str
    context: PositiveInt
    budget: PositiveInt  # pages that a row may read, reserved ones included
    pages: PositiveInt  # of the context
    samples: PositiveInt  # decoded tokens of all cases
    mass: Fraction
    mass_ci: Interval95
    worst_head_mass: Fraction
    output_error: NonNegativeFloat
    output_error_ci: Interval95
    oracle_ratio: Fraction
    oracle_ratio_ci: Interval95
    stability: Fraction | None  # None: one step has nothing before it
    stability_ci: Interval95
    bytes: NonNegativeInt  # read in a step, summaries and state included
    dense_bytes: PositiveInt
    kl: float | None
    kl_ci: Interval95
    nll: NonNegativeFloat | None
    nll_ci: Interval95
    dense_nll: NonNegativeFloat | None
    perplexity_difference: float | None
    perplexity_difference_ci: Interval95
    needle_hits: NonNegativeInt | None
    needle_cases: NonNegativeInt | None
    needle_ci: Interval95  # of the share of hits, by Wilson
    dense_needle_hits: NonNegativeInt | None
    machine: str | None  # None: nothing was simulated
    latency_ps: PositiveInt | None  # of the simulated step
    dense_latency_ps: PositiveInt | None
    latency_selection: LatencySelection | None  # which pages the simulated rows read
    latency_missing: str | None  # why there is a machine and no latency
    dense_latency_missing: str | None
    is_pareto: bool
    """Neither another row of the machine nor dense attention has as much mass for less, or more
    for as much: latency, or bytes where there is no machine. A row without a latency is not in the
    contest."""

    @model_validator(mode="after")
    def _check_latency(self) -> Self:
        for latency_ps, missing in (
            (self.latency_ps, self.latency_missing),
            (self.dense_latency_ps, self.dense_latency_missing),
        ):
            is_missing = self.machine is not None and latency_ps is None
            if is_missing != (missing is not None):
                raise ValueError("a machine gives a latency, or the reason why there is none")
        return self


class FlowDifference(Document):
    """Two flows next to each other in the order by mass at one budget, step by step."""

    budget: PositiveInt
    flow: str
    behind: str
    mass_difference: NonNegativeFloat
    mass_difference_ci: Interval95
    is_noise: bool  # the interval has 0 in it


class AttentionCompareRecord(Document):
    """Rows in the order asked for, machine by machine; of an interrupted run those that were
    complete in all cases."""

    kind: Literal["attention_compare"] = "attention_compare"
    schema_version: Literal[2] = 2
    status: Literal["complete", "interrupted"] = "complete"
    versions: Versions
    source: SourceFigures
    sizes: CompareSizes
    seed: NonNegativeInt
    latency: LatencyFigures | None  # None: without a machine
    rows: tuple[QualityRow, ...]
    differences: tuple[FlowDifference, ...]
    trials_kept: NonNegativeInt  # taken from an earlier run
    latencies_kept: NonNegativeInt
    state: str | None  # the file that a second run continues from
    compare_s: Seconds
