"""The gate of every change: a trained model answers under flows as the order of rules demands."""

from functools import cache

import numpy as np
import pytest

from tilewright.attention.planner import Reserved
from tilewright.errors import UsageError
from tilewright.evaluation import join_trials, run_trial
from tilewright.evaluation.source.base import Case, SourceSpec
from tilewright.evaluation.source.recall import RecallSource
from tilewright.evaluation.words import decode_words
from tilewright.records.attention.compare import QualityRow
from tilewright.serving.model_flow import plan_pages, trace_for_model

SPEC = SourceSpec(context=200, steps=12, cases=4, page_size=8)


@cache
def cases() -> tuple[RecallSource, tuple[Case, ...]]:
    source = RecallSource(SPEC)
    return source, tuple(source.draw(index, kept_queries=0) for index in range(SPEC.cases))


@cache
def row_of(flow: str, budget: int) -> QualityRow:
    source, drawn = cases()
    graph, plan = trace_for_model(flow, source.geometry)[1], plan_pages(budget, Reserved())
    trials = [
        run_trial(case, graph, plan, key="0" * 64, flow=flow, budget=budget, index=index)
        for index, case in enumerate(drawn)
    ]
    return join_trials(trials, source="recall", context=200, pages=25)


def test_dense_attention_recalls_nearly_everything() -> None:
    row = row_of("quest", 6)
    assert row.needle_cases == 4 * 6
    assert row.dense_needle_hits is not None
    assert row.dense_needle_hits >= 0.95 * row.needle_cases


def test_the_oracle_answers_nearly_as_dense_attention_does() -> None:
    row = row_of("oracle", 6)
    assert (row.needle_hits or 0) >= 0.8 * (row.dense_needle_hits or 0) > 0


def test_rules_come_in_their_order() -> None:
    mass = {flow: row_of(flow, 6).mass for flow in ("oracle", "quest", "random", "streaming_llm")}
    assert mass["oracle"] > mass["quest"] > max(mass["random"], mass["streaming_llm"])
    hits = {flow: row_of(flow, 6).needle_hits or 0 for flow in mass}
    assert hits["oracle"] >= hits["quest"] > max(hits["random"], hits["streaming_llm"])


def test_lost_pages_cost_likelihood() -> None:
    assert (row_of("streaming_llm", 6).nll or 0.0) > 2 * (row_of("oracle", 6).nll or 0.0)
    assert (row_of("streaming_llm", 6).kl or 0.0) > 2 * (row_of("oracle", 6).kl or 0.0)


@pytest.mark.parametrize("flow", ["quest", "random"])
def test_a_budget_of_every_page_says_what_dense_attention_says(flow: str) -> None:
    source, (case, *_) = cases()
    assert case.words is not None
    graph = trace_for_model(flow, source.geometry)[1]
    found = decode_words(case.words, graph, plan_pages(99, Reserved()))
    assert np.array_equal(found, case.words.dense)
    row = row_of(flow, 99)
    assert (row.kl, row.perplexity_difference, row.output_error) == (0.0, 0.0, 0.0)
    assert row.needle_hits == row.dense_needle_hits


def test_likelihoods_are_those_of_the_right_answers() -> None:
    _, drawn = cases()
    expected = [
        case.words.dense[one.step, one.token]
        for case in drawn
        if case.words is not None
        for one in case.words.targets
    ]
    assert len(expected) == 4 * 6
    assert row_of("quest", 99).dense_nll == pytest.approx(-np.mean(expected))


@pytest.mark.parametrize(("context", "steps"), [(7, 4), (642, 4), (20, 1), (20, 22)])
def test_sizes_that_recall_cannot_have_are_refused(context: int, steps: int) -> None:
    with pytest.raises(UsageError, match="source recall"):
        RecallSource(SourceSpec(context=context, steps=steps, cases=1))
