"""Text of a real model under flows, and of small ones of both kinds of attention."""

import numpy as np
import pytest

from tests.models.smollm2_loading import smollm2_on_one_thread
from tests.models.tiny import gqa_shape, mla_shape, peer_model, weights_of_peer
from tilewright.attention.flow import build_vflow, trace_flow
from tilewright.attention.graph import Graph
from tilewright.attention.planner import PlanSpec, parse_policy
from tilewright.errors import TilewrightError
from tilewright.models import (
    DenseAttention,
    LanguageModel,
    ModelShape,
    ModelWeights,
    logits_of,
    run_layers,
    run_prompt,
)
from tilewright.models.recall import RECALL_SHAPE, KeySmear, draw_recall, load_recall
from tilewright.serving.decode import FlowDecoder, geometry_of, kept_queries_of
from tilewright.studies.generate.text import GenerateSpec, generate

TOKENS = [int(token) for token in np.random.default_rng(3).integers(0, 100, 50)]


def traced(flow: str, shape: ModelShape, page_size: int = 4) -> Graph:
    return trace_flow(build_vflow(flow), geometry_of(shape, page_size), name=flow)


def decoded(weights: ModelWeights, flow: str, budget: int) -> np.ndarray:
    """Logits of the tokens behind a prompt of 40, each given."""
    graph = traced(flow, weights.shape)
    prompt = run_prompt(weights, TOKENS[:40], kept_queries=kept_queries_of(graph))
    plan = PlanSpec(budget=parse_policy(str(budget)))
    decoder = FlowDecoder(weights, graph, plan, prompt, capacity=len(TOKENS))
    return np.stack([decoder.step(token) for token in TOKENS[40:]])


CASES = [
    (gqa_shape(), "quest"),
    (gqa_shape(), "snapkv"),
    (gqa_shape(), "running_avg_block_sparse"),
    (mla_shape(), "quest_mla"),
    (mla_shape(), "rope_aware_block_sparse_mla"),
]


@pytest.mark.parametrize(("shape", "flow"), CASES)
def test_a_budget_of_every_page_gives_the_logits_of_dense_attention(
    shape: ModelShape, flow: str
) -> None:
    weights = weights_of_peer(shape, peer_model(shape))
    stream = run_layers(weights, TOKENS, range(len(TOKENS)), DenseAttention(shape))
    expected = np.asarray(logits_of(weights, stream))[40:]
    found = decoded(weights, flow, budget=99)
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(("shape", "flow"), CASES)
def test_a_small_budget_reads_less_and_changes_the_logits(shape: ModelShape, flow: str) -> None:
    weights = weights_of_peer(shape, peer_model(shape))
    assert not np.allclose(decoded(weights, flow, budget=3), decoded(weights, flow, budget=99))


def test_decoders_of_one_prompt_do_not_disturb_each_other() -> None:
    shape = gqa_shape()
    weights = weights_of_peer(shape, peer_model(shape))
    graph, plan = traced("quest", shape), PlanSpec(budget=parse_policy("4"))
    prompt = run_prompt(weights, TOKENS[:40])
    first, second = (
        FlowDecoder(weights, graph, plan, prompt, capacity=len(TOKENS)) for _ in range(2)
    )
    alone = [first.step(token) for token in TOKENS[40:45]]
    again = [second.step(token) for token in TOKENS[40:45]]
    assert np.array_equal(alone, again)


def test_more_tokens_than_there_is_room_for_are_refused() -> None:
    shape = gqa_shape()
    weights = weights_of_peer(shape, peer_model(shape))
    prompt = run_prompt(weights, TOKENS[:40])
    decoder = FlowDecoder(weights, traced("quest", shape), PlanSpec(), prompt, capacity=40)
    with pytest.raises(TilewrightError, match="0 free pages"):
        decoder.step(1)


def recalled(flow: str, budget: int) -> float:
    """Share of values that the recall model names, every answer decoded under the flow."""
    model = load_recall()
    graph = traced(flow, RECALL_SHAPE, page_size=8)
    plan = PlanSpec(budget=parse_policy(str(budget)))
    right = []
    for seed in range(4):
        task = draw_recall(np.random.default_rng(seed), num_pairs=100, num_asked=8)
        smear, tokens = KeySmear(model.share), task.tokens.tolist()
        prompt = run_prompt(model.weights, tokens[: task.num_context], around=smear.around)
        decoder = FlowDecoder(
            model.weights, graph, plan, prompt, capacity=len(tokens), around=smear.around
        )
        logits = np.stack([decoder.step(token) for token in tokens[task.num_context :]])
        right += list(logits[task.asked - task.num_context].argmax(axis=-1) == task.answers)
    return float(np.mean(right))


def test_recall_is_nearly_whole_with_every_page_and_tells_flows_apart_with_a_few() -> None:
    assert recalled("quest", budget=99) >= 0.95
    assert recalled("oracle", budget=6) >= 0.8
    assert recalled("streaming_llm", budget=6) <= 0.5


smollm2 = pytest.fixture(scope="module", name="smollm2")(smollm2_on_one_thread)


def text_of(model: LanguageModel, prompt: str, **changes: object) -> str:
    pieces: list[str] = []
    spec = GenerateSpec(prompt=prompt, **changes)  # type: ignore[arg-type]
    record = generate(model, spec, write=pieces.append)
    assert "".join(pieces) == record.text == model.tokenizer.decode(record.tokens)
    return record.text


def test_a_real_model_knows_a_capital(smollm2: LanguageModel) -> None:
    assert text_of(smollm2, "The capital of France is", max_tokens=4).startswith(" Paris")


NOTES = "The weather was fine and the market was full of people from the villages around. "
SECRET = "The secret code of the project is 4917. "


def test_a_real_model_under_a_flow_finds_what_a_window_has_lost(smollm2: LanguageModel) -> None:
    """The fact stands far before the question; a few pages are enough if they are the right."""
    prompt = NOTES * 3 + SECRET + NOTES * 14 + "The secret code of the project is"
    changes = {"max_tokens": 5, "page_size": 16, "budget": 6, "dense_layers": 2}
    assert "4917" in text_of(smollm2, prompt, flow="dense", max_tokens=5)
    assert "4917" in text_of(smollm2, prompt, flow="quest", **changes)
    assert "4917" not in text_of(smollm2, prompt, flow="streaming_llm", **changes)
