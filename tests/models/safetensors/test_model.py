import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, processors

from tests.models.folder_making import write_folder
from tests.models.tiny import gqa_shape, mla_shape, peer_logits
from tilewright.errors import ModelFileError
from tilewright.models.dense import DenseAttention
from tilewright.models.forward import logits_of, run_layers
from tilewright.models.rope import Llama3Scaling, RopeSpec, YarnScaling
from tilewright.models.safetensors.file import open_safetensors
from tilewright.models.safetensors.model import load_safetensors
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape

TOKENS = [3, 14, 15, 92, 65, 35]
SIGMOID = ExpertShape(
    experts=4, active=2, width=8, shared=1, dense_layers=1, gate=GateKind.SIGMOID, scaling=1.5
)
SHAPES: dict[str, GqaShape | MlaShape] = {
    "llama": gqa_shape(),
    "llama, tied": gqa_shape(tied=True),
    "qwen3": gqa_shape(query_key_norm=True),
    "qwen3_moe": gqa_shape(query_key_norm=True, experts=ExpertShape(experts=4, active=2, width=8)),
    "deepseek_v3": mla_shape(experts=SIGMOID),
    "deepseek_v3, queries at once": mla_shape(q_lora_rank=None, experts=SIGMOID),
}

Floats = npt.NDArray[Any]


def logits(folder: Path) -> Floats:
    model = load_safetensors(folder)
    stream = run_layers(model.weights, TOKENS, range(len(TOKENS)), DenseAttention(model.shape))
    return np.asarray(logits_of(model.weights, stream))


@pytest.mark.parametrize("name", SHAPES)
def test_a_folder_of_another_implementation_gives_its_logits(name: str, tmp_path: Path) -> None:
    expected = peer_logits(write_folder(tmp_path, SHAPES[name]), TOKENS)
    assert np.abs(logits(tmp_path) - expected).max() <= 2e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", SHAPES)
def test_the_shape_is_what_the_configuration_says(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, SHAPES[name])
    found = load_safetensors(tmp_path).shape
    assert replace(found, name=SHAPES[name].name) == SHAPES[name]


def rewrite(folder: Path, change: Any) -> None:
    """Change the tensors of a folder."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


def test_weights_of_half_width_are_read_as_they_are(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    full = load_safetensors(tmp_path).weights.embedding
    rewrite(tmp_path, lambda found: {key: v.astype(ml_dtypes.bfloat16) for key, v in found.items()})
    half = load_safetensors(tmp_path).weights.embedding
    assert half.dtype == np.float32
    assert np.array_equal(half, full.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_parts_are_joined_by_their_index(tmp_path: Path) -> None:
    expected = peer_logits(write_folder(tmp_path, gqa_shape()), TOKENS)
    split(tmp_path)
    assert np.abs(logits(tmp_path) - expected).max() <= 2e-5 * np.abs(expected).max()


def split(folder: Path) -> dict[str, str]:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"part-{index % 2}.safetensors" for index, name in enumerate(tensors)}
    for part in set(places.values()):
        save_file({n: v for n, v in tensors.items() if places[n] == part}, folder / part)
    write_index(folder, places)
    return places


def write_index(folder: Path, places: object) -> None:
    text = json.dumps({"weight_map": places})
    (folder / "model.safetensors.index.json").write_text(text)


@pytest.mark.parametrize("part", ["../secret.safetensors", "/etc/passwd", ".hidden", "a/b"])
def test_an_index_that_leads_out_of_its_folder_is_refused(part: str, tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    write_index(tmp_path, {"model.norm.weight": part})
    with pytest.raises(ModelFileError, match="expected a file beside it"):
        load_safetensors(tmp_path)


def test_an_index_that_names_what_a_part_has_not_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    places = split(tmp_path)
    write_index(tmp_path, places | {"model.more.weight": "part-0.safetensors"})
    with pytest.raises(ModelFileError, match=r"'model\.more\.weight', as the index says"):
        load_safetensors(tmp_path)


def test_an_index_without_a_map_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    write_index(tmp_path, 7)
    with pytest.raises(ModelFileError, match="found no weight_map"):
        load_safetensors(tmp_path)


WRONG_CONFIGS = {
    "another architecture": ({"model_type": "mamba"}, "model_type: found 'mamba'"),
    "another activation": ({"hidden_act": "gelu"}, "hidden_act: found 'gelu'"),
    "biases": ({"attention_bias": True}, "attention_bias: found True"),
    "a quantised model": ({"quantization_config": {"bits": 4}}, "quantization_config: found"),
    "a size that is text": ({"hidden_size": "48"}, "hidden_size: found '48'"),
    "a size that is negative": ({"vocab_size": -1}, "vocab_size: found -1"),
    "a huge size": ({"vocab_size": 2**40}, "vocab_size: found"),
    "no size": ({"intermediate_size": None}, "intermediate_size: found no such entry"),
    "another width": ({"intermediate_size": 64}, r"found shape \[96, 48\].*\[64, 48\]"),
    "more layers": ({"num_hidden_layers": 3}, r"'model\.layers\.2\.self_attn\.q_proj.*no such"),
    "fewer layers": ({"num_hidden_layers": 1}, "tensors without a place in the model"),
    "an unknown RoPE": (
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}},
        "rope_type: found 'dynamic'",
    ),
    "no end": ({"eos_token_id": None}, "eos_token_id: found None"),
    "an end beyond the tokens": ({"eos_token_id": [1, 100]}, "eos_token_id: found"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG_CONFIGS.values(), ids=WRONG_CONFIGS)
def test_a_configuration_that_does_not_fit_is_refused_with_its_reason(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_folder(tmp_path, gqa_shape(), **changes)
    with pytest.raises(ModelFileError, match=message):
        load_safetensors(tmp_path)


WRONG_FILES = {
    "an empty file": (b"", "an empty file"),
    "a header that is too long": ((2**62).to_bytes(8, "little") + b"{}", "a damaged file"),
    "a header that is no JSON": ((4).to_bytes(8, "little") + b"nope", "a damaged file"),
    "no tensors": ((2).to_bytes(8, "little") + b"{}", "no such tensor"),
}


@pytest.mark.parametrize(("data", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_damaged_file_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        load_safetensors(tmp_path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="a damaged file"):
        load_safetensors(tmp_path)


def test_weights_of_a_type_that_we_do_not_compute_with_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    rewrite(tmp_path, lambda found: {key: v.astype(np.int8) for key, v in found.items()})
    with pytest.raises(ModelFileError, match="found type I8"):
        load_safetensors(tmp_path)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    rewrite(tmp_path, lambda found: {key: v * np.float32(np.inf) for key, v in found.items()})
    with pytest.raises(ModelFileError, match="infinite values or NaN"):
        load_safetensors(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_without_one_of_its_files_is_refused(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    (tmp_path / name).unlink()
    with pytest.raises(ModelFileError, match=rf"{name}: found .*No such file"):
        load_safetensors(tmp_path)


def test_a_tokenizer_that_is_none_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: found .* expected a tokenizer"):
        load_safetensors(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00", "[1]"])
def test_a_configuration_that_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"config\.json: found (no JSON|a JSON list)"):
        load_safetensors(tmp_path)


def test_the_first_token_of_a_tokenizer_of_its_own_stands_in_front(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    made = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    made.post_processor = processors.TemplateProcessing(single="! $A", special_tokens=[("!", 0)])
    made.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_safetensors(tmp_path).tokenizer
    assert tokenizer.encode("ab") == [0, ord("a") - 33, ord("b") - 33]


def test_layers_that_guess_further_ahead_are_left_alone(tmp_path: Path) -> None:
    write_folder(tmp_path, mla_shape(experts=SIGMOID), num_nextn_predict_layers=1)
    more = {"model.layers.2.enorm.weight": np.ones(48, np.float32)}
    rewrite(tmp_path, lambda found: found | more)
    assert load_safetensors(tmp_path).shape.layers == 2


def test_older_entries_of_rope_mean_the_same(tmp_path: Path) -> None:
    stretch = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    old = {"rope_parameters": None, "rope_theta": 5e5, "rope_scaling": stretch}
    write_folder(tmp_path, gqa_shape(), **old)
    scaling = Llama3Scaling(factor=8.0, original_context=64)
    expected = RopeSpec(base=5e5, width=8, scaling=scaling)
    assert load_safetensors(tmp_path).shape.rope == expected


def test_a_yarn_of_latents_is_read(tmp_path: Path) -> None:
    yarn = {
        "type": "yarn",
        "factor": 40,
        "mscale": 0.707,
        "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 4096,
    }
    old = {"rope_parameters": None, "rope_theta": 10000, "rope_scaling": yarn}
    write_folder(tmp_path, mla_shape(experts=SIGMOID), **old)
    scaling = YarnScaling(factor=40.0, original_context=4096, mscale=0.707, mscale_all=0.707)
    assert load_safetensors(tmp_path).shape.rope == RopeSpec(base=1e4, width=4, scaling=scaling)


def test_a_file_that_is_cut_behind_our_back_is_refused_and_ends_no_process(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    file = open_safetensors(tmp_path)
    os.truncate(tmp_path / "model.safetensors", 4096)
    with pytest.raises(ModelFileError, match="found a file that has changed"):
        file.read("model.norm.weight", (gqa_shape().hidden,))


def test_a_billion_layers_are_refused_at_once(tmp_path: Path) -> None:
    write_folder(tmp_path, gqa_shape())
    for key in ("num_hidden_layers", "num_nextn_predict_layers"):
        entries = json.loads((tmp_path / "config.json").read_text()) | {key: 10**9}
        (tmp_path / "other").mkdir(exist_ok=True)
        for name in ("model.safetensors", "tokenizer.json"):
            (tmp_path / "other" / name).write_bytes((tmp_path / name).read_bytes())
        (tmp_path / "other" / "config.json").write_text(json.dumps(entries))
        with pytest.raises(
            ModelFileError, match=rf"{key}: found 1000000000, expected .* 0\.\.10000"
        ):
            load_safetensors(tmp_path / "other")
