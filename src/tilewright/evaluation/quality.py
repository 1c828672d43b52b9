"""Trials of a flow at a budget, the rows that they are joined to, and their 95 % intervals."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.attention.graph import Graph, graph_hash
from tilewright.attention.planner import PlanSpec
from tilewright.errors import RecordError
from tilewright.evaluation.source.base import Case
from tilewright.evaluation.stream import replay_flow
from tilewright.evaluation.words import WordSamples, say_words
from tilewright.records.attention.compare import FlowDifference, QualityRow, TrialRecord

NORMAL_QUANTILE = 1.959963984540054  # 97.5 % of a normal distribution are below


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of samples; ``interval`` is None with fewer than two of them."""

    value: float
    interval: tuple[float, float] | None

    @property
    def has_zero(self) -> bool:
        """Whether the mean may well be 0; nobody knows from one sample."""
        return self.interval is None or self.interval[0] <= 0.0 <= self.interval[1]


def mean_of(samples: Sequence[float]) -> Mean:
    """By Student's t. Samples count as independent of each other.

    >>> low, high = mean_of([1.0, 2.0, 3.0]).interval
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    values = np.asarray(samples, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Mean(mean, None)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(len(values) - 1) * error
    return Mean(mean, (mean - half, mean + half))


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Mean:
    """Of samples that belong together: what both have in common does not widen the interval."""
    return mean_of([one - other for one, other in zip(first, second, strict=True)])


def share_interval(hits: int, cases: int) -> tuple[float, float]:
    """Wilson's interval of a share: it stays between 0 and 1, and has width even at the ends."""
    share, z = hits / cases, NORMAL_QUANTILE
    scale = 1 + z * z / cases
    centre = (share + z * z / (2 * cases)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    return max(0.0, centre - half), min(1.0, centre + half)


def student_quantile(degrees: int) -> float:
    """97.5 % of Student's distribution are below: exact for 1 and 2, else within 1 %.

    From 3 degrees on by the expansion of Cornish and Fisher.
    """
    if degrees == 1:
        return math.tan(math.pi * 0.475)
    if degrees == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    z, n = NORMAL_QUANTILE, degrees
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


MEANS = ("mass", "output_error", "oracle_ratio", "stability", "kl", "nll")
"""Figures of trials whose mean and interval a row has."""
MAX_EXPONENT = 300.0


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """For each (cost, quality): whether no other point is at least as good in both, and not equal.

    >>> pareto_front([(1, 0.5), (2, 0.9), (2, 0.7), (3, 0.9)])
    (True, True, False, False)
    """
    return tuple(not any(_beats(other, point) for other in points) for point in points)


def _beats(other: tuple[float, float], point: tuple[float, float]) -> bool:
    return other[0] <= point[0] and other[1] >= point[1] and other != point


def run_trial(
    case: Case, graph: Graph, plan: PlanSpec, *, key: str, flow: str, budget: int, index: int
) -> TrialRecord:
    attention = replay_flow(case.stream, graph, plan)
    said = None if case.words is None else say_words(case.words, graph, plan)
    figures = dict.fromkeys(("kl", "nll", "dense_nll")) if said is None else asdict(said)
    return TrialRecord(
        key=key,
        flow=flow,
        budget=budget,
        case=index,
        graph_hash=graph_hash(graph),
        **asdict(attention) | figures | _needles(case, attention.needle_hits, said),
    )


def _needles(case: Case, planted_hits: int, said: WordSamples | None) -> dict[str, int | None]:
    """Hits, hits of dense attention, and how many there are: of answers, or of planted keys."""
    found: tuple[int | None, int | None, int | None] = (None, None, None)
    if said is not None and case.words is not None and case.words.needles:
        found = said.needle_hits, said.dense_needle_hits, len(case.words.needles)
    elif case.stream.needles:
        found = planted_hits, len(case.stream.needles), len(case.stream.needles)
    return dict(zip(("needle_hits", "dense_needle_hits", "needle_cases"), found, strict=True))


def join_trials(
    trials: Sequence[TrialRecord], *, source: str, context: int, pages: int
) -> QualityRow:
    """The row of one flow and budget. Samples are decoded tokens; time and front are still open."""
    first = trials[0]
    means = {name: _mean(trials, name) for name in MEANS}
    means["perplexity_difference"] = _perplexity_difference(trials) if means["nll"] else None
    values = {name: mean.value if mean else None for name, mean in means.items()}
    intervals = {f"{name}_ci": mean.interval if mean else None for name, mean in means.items()}
    for name in ("mass", "oracle_ratio"):  # sums of many shares may come out a last bit above 1
        values[name] = min(1.0, max(0.0, values[name] or 0.0))
    dense_nll, steps = _mean(trials, "dense_nll"), sum(len(trial.mass) for trial in trials)
    hits, cases = _total(trials, "needle_hits"), _total(trials, "needle_cases")
    figures: dict[str, Any] = {**values, **intervals}
    figures |= {
        "output_error": max(0.0, values["output_error"] or 0.0),
        "nll": None if means["nll"] is None else max(0.0, means["nll"].value),
        "dense_nll": None if dense_nll is None else max(0.0, dense_nll.value),
    }
    return QualityRow(
        flow=first.flow,
        graph_hash=first.graph_hash,
        source=source,
        context=context,
        budget=first.budget,
        pages=pages,
        samples=steps,
        worst_head_mass=_worst_head(trials),
        bytes=sum(trial.num_bytes for trial in trials) // steps,
        dense_bytes=sum(trial.dense_bytes for trial in trials) // steps,
        needle_hits=hits,
        needle_cases=cases,
        needle_ci=None if hits is None or not cases else share_interval(hits, cases),
        dense_needle_hits=_total(trials, "dense_needle_hits"),
        machine=None,
        latency_ps=None,
        dense_latency_ps=None,
        latency_selection=None,
        latency_missing=None,
        dense_latency_missing=None,
        is_pareto=False,
        **figures,
    )


def order_flows(trials: Sequence[TrialRecord]) -> tuple[FlowDifference, ...]:
    """Flows of each budget by mass; neighbours are compared step by step on equal queries."""
    found = []
    for budget in sorted({trial.budget for trial in trials}):
        samples: dict[str, list[float]] = {}
        for trial in trials:
            if trial.budget == budget:
                samples.setdefault(trial.flow, []).extend(trial.mass)
        ranked = sorted(samples, key=lambda flow: -float(np.mean(samples[flow])))
        for flow, behind in pairwise(ranked):
            difference = paired_difference(samples[flow], samples[behind])
            found.append(
                FlowDifference(
                    budget=budget,
                    flow=flow,
                    behind=behind,
                    mass_difference=max(0.0, difference.value),
                    mass_difference_ci=difference.interval,
                    is_noise=difference.has_zero,
                )
            )
    return tuple(found)


def _mean(trials: Sequence[TrialRecord], name: str) -> Mean | None:
    samples = [sample for trial in trials for sample in getattr(trial, name) or ()]
    return mean_of(samples) if samples else None


def _worst_head(trials: Sequence[TrialRecord]) -> float:
    if len({len(trial.head_mass) for trial in trials}) > 1:
        found, fix = "trials of different numbers of heads", "remove the state, and compare anew"
        raise RecordError(f"flow {trials[0].flow!r}", found, "trials of one model", fix)
    weights = [len(trial.mass) for trial in trials]
    by_head = np.average([trial.head_mass for trial in trials], axis=0, weights=weights)
    return min(1.0, float(by_head.min()))


def _total(trials: Sequence[TrialRecord], name: str) -> int | None:
    counts = [getattr(trial, name) for trial in trials]
    return None if None in counts else sum(counts)


def _perplexity_difference(trials: Sequence[TrialRecord]) -> Mean:
    """Perplexity under the flow less that of dense attention, on the same tokens.

    The interval is that of the paired difference of log-likelihoods, carried over.
    """
    nll = [sample for trial in trials for sample in trial.nll or ()]
    dense = [sample for trial in trials for sample in trial.dense_nll or ()]
    difference, base = paired_difference(nll, dense), _growth(float(np.mean(dense))) + 1
    low, high = difference.interval or (0.0, 0.0)
    interval = (base * _growth(low), base * _growth(high))
    return Mean(base * _growth(difference.value), interval if difference.interval else None)


def _growth(exponent: float) -> float:
    """Return exp(exponent) - 1, up to a limit, so that products of two stay finite."""
    return math.expm1(min(exponent, MAX_EXPONENT))
