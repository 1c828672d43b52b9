"""A real model on short contexts; skipped where its weights are not installed."""

from functools import cache

import numpy as np
import pytest

from tests.models.smollm2_loading import smollm2_on_one_thread
from tilewright.attention.planner import Reserved
from tilewright.errors import UsageError
from tilewright.evaluation.source.base import SourceSpec
from tilewright.evaluation.source.smollm2 import NeedleSource, TextSource, cut_tokens, python_topics
from tilewright.evaluation.stream import replay_flow
from tilewright.evaluation.words import say_words
from tilewright.models import LanguageModel
from tilewright.serving.model_flow import plan_pages, trace_for_model

smollm2 = pytest.fixture(scope="module", name="smollm2")(smollm2_on_one_thread)


def test_rules_come_in_their_order_and_every_page_gives_dense_words(
    smollm2: LanguageModel,
) -> None:
    source = TextSource(SourceSpec(context=384, steps=4, cases=1), smollm2)
    case = source.draw(0, kept_queries=0)
    assert case.words is not None

    @cache
    def mass(flow: str) -> float:
        graph = trace_for_model(flow, source.geometry)[1]
        return float(np.mean(replay_flow(case.stream, graph, plan_pages(4, Reserved())).mass))

    assert mass("oracle") > mass("quest") > mass("random")
    assert mass("oracle") > mass("block_sparse_attention") > mass("random")
    graph = trace_for_model("quest", source.geometry)[1]
    said = say_words(case.words, graph, plan_pages(99, Reserved()))
    assert said.kl == (0.0,) * 4
    assert said.nll == said.dense_nll
    assert 0.0 < np.mean(said.nll) < 8.0  # of 49,152 tokens a guess has 10.8


def test_a_fact_is_asked_for_behind_the_context_and_found_by_dense_attention(
    smollm2: LanguageModel,
) -> None:
    source = NeedleSource(SourceSpec(context=256, steps=16, cases=2), smollm2)
    case = source.draw(1, kept_queries=0)
    assert case.words is not None
    decode = smollm2.tokenizer.decode
    code = decode([target.token for target in case.words.targets])
    context, asked = decode(case.stream.context_tokens), decode(case.words.tokens)
    assert len(case.stream.context_tokens) == 256
    assert context.count(f"The secret code of project Bamboo is {code}.") == 1
    assert asked.strip() == f"The secret code of project Bamboo is {code[:-1]}"
    graph = trace_for_model("oracle", source.geometry)[1]
    said = say_words(case.words, graph, plan_pages(8, Reserved()))
    assert said.dense_needle_hits == 1
    assert len(said.nll) == 4


def test_sizes_beyond_the_model_or_too_small_for_the_question_are_refused(
    smollm2: LanguageModel,
) -> None:
    with pytest.raises(UsageError, match="8192 at most"):
        TextSource(SourceSpec(context=8190, steps=4, cases=1), smollm2)
    source = NeedleSource(SourceSpec(context=128, steps=3, cases=1), smollm2)
    with pytest.raises(UsageError, match="for the question and its answer"):
        source.draw(0, kept_queries=0)


def test_cuts_of_the_text_are_drawn_from_the_seed_alone(smollm2: LanguageModel) -> None:
    text = python_topics()
    first, again, other = (
        cut_tokens(text, smollm2.tokenizer, np.random.default_rng(seed), 50) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == 50
    assert smollm2.tokenizer.decode(first) in text.content


def test_a_text_that_is_too_short_is_refused(smollm2: LanguageModel) -> None:
    with pytest.raises(UsageError, match="pydoc_data"):
        cut_tokens(python_topics(), smollm2.tokenizer, np.random.default_rng(0), 10**6)
