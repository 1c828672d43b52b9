from dataclasses import replace

import pytest
import torch

from tests.models.peer import peer_config, transformers
from tilewright.errors import ModelError
from tilewright.models.catalogue import SHAPES, find_shape

PUBLISHED = {
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_404_352,
    "glm-4.7-flash": 29_943_390_976,
}
ACTIVE_BILLIONS = {  # as the makers of the models state them
    "qwen3-30b-a3b": 3.3,
    "deepseek-v2": 21.0,
    "deepseek-v3": 37.0,
}


def test_every_shape_has_a_published_parameter_count() -> None:
    assert {name: shape.num_parameters for name, shape in SHAPES.items()} == PUBLISHED


@pytest.mark.parametrize(("name", "billions"), ACTIVE_BILLIONS.items())
def test_a_token_meets_as_many_parameters_as_the_makers_say(name: str, billions: float) -> None:
    assert SHAPES[name].active_parameters / 1e9 == pytest.approx(billions, rel=0.03)


@pytest.mark.parametrize("name", [n for n, shape in SHAPES.items() if shape.experts is None])
def test_without_experts_a_token_meets_every_parameter(name: str) -> None:
    assert SHAPES[name].active_parameters == SHAPES[name].num_parameters


@pytest.mark.parametrize("name", SHAPES)
def test_another_implementation_of_two_layers_has_as_many_parameters(name: str) -> None:
    shape = SHAPES[name]
    experts = shape.experts and replace(
        shape.experts, dense_layers=min(shape.experts.dense_layers, 1)
    )
    short = replace(shape, layers=2, experts=experts)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(peer_config(short))
    assert short.num_parameters == sum(part.numel() for part in model.parameters())


def test_a_shape_is_found_whatever_the_case_of_its_letters() -> None:
    assert find_shape("SmolLM2-135M") is SHAPES["smollm2-135m"]


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    with pytest.raises(ModelError, match=r"shape 'gpt-5': found no such shape.*smollm2-135m"):
        find_shape("gpt-5")
