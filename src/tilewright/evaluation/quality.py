"""Rows of a comparison: the trials of one flow and budget in all cases, joined."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tilewright.errors import RecordError
from tilewright.evaluation.interval import Mean, mean_of, paired_difference, share_interval
from tilewright.records.attention.compare import FlowDifference, QualityRow, TrialRecord

NOTHING = Mean(0.0, None)
MAX_EXPONENT = 300.0


def join_trials(
    trials: Sequence[TrialRecord], *, source: str, context: int, pages: int
) -> QualityRow:
    """The row of one flow and budget. Samples are decoded tokens; time and front are still open."""
    first = trials[0]
    mass, error = _mean(trials, "mass"), _mean(trials, "output_error")
    ratio, stability = _mean(trials, "oracle_ratio"), _mean(trials, "stability")
    kl, nll, dense_nll = (_mean(trials, name) for name in ("kl", "nll", "dense_nll"))
    steps = sum(len(trial.mass) for trial in trials)
    hits, cases = _total(trials, "needle_hits"), _total(trials, "needle_cases")
    perplexity = None if nll is None else _perplexity_difference(trials)
    return QualityRow(
        flow=first.flow,
        graph_hash=first.graph_hash,
        source=source,
        context=context,
        budget=first.budget,
        pages=pages,
        samples=steps,
        mass=_share(mass),
        mass_ci=(mass or NOTHING).interval,
        worst_head_mass=_worst_head(trials),
        output_error=max(0.0, (error or NOTHING).value),
        output_error_ci=(error or NOTHING).interval,
        oracle_ratio=_share(ratio),
        oracle_ratio_ci=(ratio or NOTHING).interval,
        stability=None if stability is None else stability.value,
        stability_ci=(stability or NOTHING).interval,
        bytes=sum(trial.num_bytes for trial in trials) // steps,
        dense_bytes=sum(trial.dense_bytes for trial in trials) // steps,
        kl=None if kl is None else kl.value,
        kl_ci=(kl or NOTHING).interval,
        nll=None if nll is None else max(0.0, nll.value),
        nll_ci=(nll or NOTHING).interval,
        dense_nll=None if dense_nll is None else max(0.0, dense_nll.value),
        perplexity_difference=None if perplexity is None else perplexity.value,
        perplexity_difference_ci=(perplexity or NOTHING).interval,
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


def _share(mean: Mean | None) -> float:
    """Sums of many shares may come out a last bit above 1."""
    return min(1.0, max(0.0, (mean or NOTHING).value))


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
