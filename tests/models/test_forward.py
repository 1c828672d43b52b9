from dataclasses import replace
from typing import Any, cast

import array_api_compat.numpy as xp
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models.peer import peer_config, transformers
from tests.models.tiny import gqa_shape, mla_shape, peer_logits, peer_model, weights_of_peer
from tilewright.errors import ModelError
from tilewright.models.catalogue import SHAPES as CATALOGUE
from tilewright.models.dense import DenseAttention
from tilewright.models.forward import choose_experts, choose_token, logits_of, run_layers
from tilewright.models.model import LanguageModel
from tilewright.models.rope import Llama3Scaling, RopeSpec, YarnScaling
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape
from tilewright.models.weights import GqaAttention, ModelWeights, map_arrays

TOKENS = [int(token) for token in np.random.default_rng(5).integers(0, 100, 60)]
YARN = YarnScaling(factor=8.0, original_context=32, mscale=1.0, mscale_all=1.0)
LLAMA3 = Llama3Scaling(factor=4.0, original_context=64)
SIGMOID = ExpertShape(
    experts=8,
    active=3,
    width=16,
    shared=2,
    dense_layers=1,
    gate=GateKind.SIGMOID,
    groups=4,
    active_groups=2,
    scaling=2.5,
)

Floats = npt.NDArray[np.float32]


def dense_logits(weights: ModelWeights, tokens: list[int]) -> Floats:
    attend = DenseAttention(weights.shape)
    stream = run_layers(weights, tokens, range(len(tokens)), attend)
    return np.asarray(logits_of(weights, stream))


def rope_entries(shape: GqaShape | MlaShape) -> dict[str, Any]:
    match shape.rope.scaling:
        case Llama3Scaling() as scaling:
            return {
                "rope_type": "llama3",
                "rope_theta": shape.rope.base,
                "factor": scaling.factor,
                "low_freq_factor": scaling.low_frequency_factor,
                "high_freq_factor": scaling.high_frequency_factor,
                "original_max_position_embeddings": scaling.original_context,
            }
        case YarnScaling() as scaling:
            return {
                "rope_type": "yarn",
                "rope_theta": shape.rope.base,
                "factor": scaling.factor,
                "mscale": scaling.mscale,
                "mscale_all_dim": scaling.mscale_all,
                "original_max_position_embeddings": scaling.original_context,
            }
        case _:
            return {"rope_type": "default", "rope_theta": shape.rope.base}


SHAPES: dict[str, GqaShape | MlaShape] = {
    "llama": gqa_shape(),
    "llama, tied": gqa_shape(tied=True),
    "llama, stretched": gqa_shape(rope=RopeSpec(base=500.0, width=8, scaling=LLAMA3)),
    "one KV head for each query head": gqa_shape(kv_heads=6),
    "qwen3": gqa_shape(query_key_norm=True, head_dim=16, rope=RopeSpec(base=1e6, width=16)),
    "qwen3, experts": gqa_shape(
        query_key_norm=True, experts=ExpertShape(experts=8, active=2, width=16)
    ),
    "latent": mla_shape(),
    "latent, queries at once": mla_shape(q_lora_rank=None),
    "latent, stretched": mla_shape(rope=RopeSpec(base=100.0, width=4, scaling=YARN)),
    "latent, experts": mla_shape(experts=SIGMOID),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_logits_are_those_of_another_implementation(shape: GqaShape | MlaShape) -> None:
    model = peer_model(shape, rope_parameters=rope_entries(shape))
    expected = peer_logits(model, TOKENS)
    found = dense_logits(weights_of_peer(shape, model), TOKENS)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


@pytest.mark.parametrize("groups", [1, 4])
def test_experts_by_softmax_are_those_of_another_implementation(groups: int) -> None:
    experts = ExpertShape(
        experts=8,
        active=2,
        width=16,
        shared=1,
        dense_layers=1,
        groups=groups,
        active_groups=min(groups, 2),
        normalized=False,
        scaling=1.5,
    )
    shape = mla_shape(experts=experts)
    model = transformers.DeepseekV2ForCausalLM(
        transformers.DeepseekV2Config(
            **{
                key: value
                for key, value in vars(peer_model(shape).config).items()
                if key in VERSION_2_KEYS
            },
            topk_method="greedy" if groups == 1 else "group_limited_greedy",
        )
    ).eval()
    for layer in model.model.layers[experts.dense_layers :]:
        layer.mlp.num_experts = experts.experts  # which versions before 5.13 read and never set
    generator = torch.Generator().manual_seed(3)
    for value in model.parameters():
        value.data = 0.2 * torch.randn(value.shape, generator=generator) + (value.ndim == 1)
    expected = peer_logits(model, TOKENS)
    found = dense_logits(weights_of_peer(shape, model), TOKENS)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


VERSION_2_KEYS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps",
    "max_position_embeddings",
    "rope_parameters",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "first_k_dense_replace",
    "n_group",
    "topk_group",
    "routed_scaling_factor",
)


@pytest.mark.parametrize("name", ["llama", "qwen3, experts", "latent", "latent, experts"])
def test_torch_arrays_give_the_same_logits(name: str) -> None:
    shape = SHAPES[name]
    weights = weights_of_peer(shape, peer_model(shape))
    found = dense_logits(map_arrays(weights, lambda array: torch.tensor(array)), TOKENS)
    expected = dense_logits(weights, TOKENS)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


@pytest.mark.parametrize("piece", [1, 7, 64])
@pytest.mark.parametrize("name", ["llama", "latent"])
def test_a_prompt_may_be_cut_anywhere(name: str, piece: int) -> None:
    shape = SHAPES[name]
    weights = weights_of_peer(shape, peer_model(shape))
    attend = DenseAttention(shape)
    parts = []
    for start in range(0, len(TOKENS), piece):
        tokens = TOKENS[start : start + piece]
        stream = run_layers(weights, tokens, range(start, start + len(tokens)), attend)
        parts.append(logits_of(weights, stream))
    expected = dense_logits(weights, TOKENS)
    assert np.abs(np.concatenate(parts) - expected).max() <= 2e-5 * np.abs(expected).max()


def test_tokens_of_several_sequences_may_go_together() -> None:
    """The attention step alone says what belongs together."""
    shape = SHAPES["llama"]
    weights = weights_of_peer(shape, peer_model(shape))
    sequences = [TOKENS[:20], TOKENS[20:55]]
    expected = [dense_logits(weights, sequence)[-1] for sequence in sequences]
    caches = [DenseAttention(shape) for _ in sequences]
    for cache, sequence in zip(caches, sequences, strict=True):
        run_layers(weights, sequence[:-1], range(len(sequence) - 1), cache)

    def attend(layer: int, queries: Floats, keys: Floats, values: Floats | None) -> Floats:
        assert values is not None
        rows = [slice(row, row + 1) for row in range(2)]
        parts = [
            cache(layer, queries[row], keys[row], values[row])
            for cache, row in zip(caches, rows, strict=True)
        ]
        return np.concatenate(parts)

    last = [sequence[-1] for sequence in sequences]
    stream = run_layers(weights, last, [len(s) - 1 for s in sequences], attend)
    assert logits_of(weights, stream) == pytest.approx(np.stack(expected), abs=1e-4)


@pytest.mark.parametrize(
    ("tokens", "positions", "message"),
    [
        ([], [], "found 0 tokens"),
        ([1, 2], [0], "found 2 tokens at 1 positions"),
        ([1, 100], [0, 1], r"found token 100, expected 0\.\.99"),
        ([-1, 1], [0, 1], "found token -1"),
    ],
)
def test_tokens_that_the_model_has_not_are_refused(
    tokens: list[int], positions: list[int], message: str
) -> None:
    weights = weights_of_peer(gqa_shape(), peer_model(gqa_shape()))
    with pytest.raises(ModelError, match=message):
        run_layers(weights, tokens, positions, DenseAttention(weights.shape))


def test_smollm2_gives_the_logits_of_another_implementation(smollm2: LanguageModel) -> None:
    text = (
        "A transformer reads a text token by token. Each layer mixes what it has seen before. "
    ) * 40
    tokens = smollm2.tokenizer.encode(text)[:512]
    assert len(tokens) == 512
    shape = smollm2.shape
    assert isinstance(shape, GqaShape)
    expected = peer_logits(peer_of_smollm2(smollm2.weights, shape), tokens)
    found = dense_logits(smollm2.weights, tokens)
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
    assert np.array_equal(found.argmax(axis=-1), expected.argmax(axis=-1))


def peer_of_smollm2(weights: ModelWeights, shape: GqaShape) -> Any:
    """Made without memory of its own, then given our arrays."""
    config = peer_config(shape)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.load_state_dict(named_for_peer(weights, shape), assign=True, strict=False)
    model.tie_weights()
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


def named_for_peer(weights: ModelWeights, shape: GqaShape) -> dict[str, Any]:
    """Our arrays under the other implementation's names, without a copy."""
    queries, keys = shape.query_heads * shape.head_dim, shape.kv_heads * shape.head_dim
    found = {"model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.norm}
    for index, layer in enumerate(weights.layers):
        attention, part = layer.attention, f"model.layers.{index}."
        assert isinstance(attention, GqaAttention)
        joined = attention.query_key_value
        ffn: Any = layer.ffn
        found |= {
            part + "input_layernorm.weight": layer.attention_norm,
            part + "post_attention_layernorm.weight": layer.ffn_norm,
            part + "self_attn.q_proj.weight": joined[:queries],
            part + "self_attn.k_proj.weight": joined[queries : queries + keys],
            part + "self_attn.v_proj.weight": joined[queries + keys :],
            part + "self_attn.o_proj.weight": attention.output,
            part + "mlp.gate_proj.weight": ffn.gate_up[: shape.ffn],
            part + "mlp.up_proj.weight": ffn.gate_up[shape.ffn :],
            part + "mlp.down_proj.weight": ffn.down,
        }
    return {name: torch.from_numpy(values) for name, values in found.items()}


def test_smollm2_has_the_shape_of_the_catalogue(smollm2: LanguageModel) -> None:
    from_file = replace(smollm2.shape, name="smollm2-135m", norm_eps=1e-5)
    assert from_file == CATALOGUE["smollm2-135m"]


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(GateKind),
    st.booleans(),
    st.data(),
    st.integers(0, 2**32 - 1),
)
def test_chosen_experts_are_the_best_of_the_best_groups(
    groups: int, group_size: int, gate: GateKind, normalized: bool, data: st.DataObject, seed: int
) -> None:
    active_groups = data.draw(st.integers(1, groups))
    active = data.draw(st.integers(1, active_groups * group_size))
    experts = ExpertShape(
        experts=groups * group_size,
        active=active,
        width=1,
        gate=gate,
        groups=groups,
        active_groups=active_groups,
        normalized=normalized,
        scaling=1.5,
    )
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((3, experts.experts)).astype(np.float32)
    bias = rng.standard_normal(experts.experts).astype(np.float32)
    given_bias = bias if gate is GateKind.SIGMOID else None
    chosen, weights = choose_experts(xp, logits, given_bias, experts)
    for token in range(3):
        if gate is GateKind.SIGMOID:
            scores = 1 / (1 + np.exp(-logits[token]))
            choice = scores + bias
        else:
            scores = np.exp(logits[token]) / np.exp(logits[token]).sum()
            choice = scores
        counted = 2 if gate is GateKind.SIGMOID else 1
        grouped = np.sort(choice.reshape(groups, group_size), axis=-1)[:, ::-1][:, :counted]
        best_groups = np.argsort(-grouped.sum(axis=-1), kind="stable")[:active_groups]
        allowed = [e for e in range(experts.experts) if e // group_size in best_groups]
        expected = sorted(allowed, key=lambda e: -choice[e])[:active]
        assert chosen[token].tolist() == expected
        share = scores[expected] / (scores[expected].sum() if normalized else 1.0)
        assert weights[token] == pytest.approx(1.5 * share, rel=1e-4)


def test_the_likeliest_token_is_chosen_and_the_lowest_of_equals() -> None:
    assert choose_token([0.5, 3.0, 3.0, -1.0]) == 1


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=20), st.integers(0, 2**32 - 1))
def test_equal_seeds_draw_equal_tokens(logits: list[float], seed: int) -> None:
    first, second = (
        choose_token(logits, temperature=0.8, rng=np.random.default_rng(seed)) for _ in range(2)
    )
    assert first == second
    assert 0 <= first < len(logits)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_softmax_says(temperature: float) -> None:
    logits = np.array([0.0, 1.0, 2.0, -1e30])
    rng = np.random.default_rng(7)
    drawn = [choose_token(logits, temperature=temperature, rng=rng) for _ in range(4000)]
    expected = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("logits", [[np.nan, 1.0], [np.inf, 0.0], [[1.0, 2.0]]])
def test_logits_that_say_nothing_are_refused(logits: list[float]) -> None:
    with pytest.raises(ModelError, match="logits: found"):
        choose_token(logits)


@pytest.mark.parametrize("temperature", [-0.1, np.inf, np.nan])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(ModelError, match="temperature: found"):
        choose_token([1.0], temperature=temperature, rng=np.random.default_rng(0))


def test_drawing_without_a_generator_is_refused() -> None:
    with pytest.raises(ModelError, match="a generator to draw from"):
        choose_token([1.0], temperature=1.0)


class Lowest:
    """A generator that draws the lowest number there is."""

    def random(self) -> float:
        return 0.0


def test_a_token_of_no_probability_is_never_drawn() -> None:
    rng = cast(np.random.Generator, Lowest())
    assert choose_token([-1e30, 0.0, 0.0], temperature=1.0, rng=rng) == 1
