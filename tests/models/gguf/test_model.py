from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.gguf_making import TOKENS, tiny_metadata, tiny_tensors, write_gguf
from tilewright.errors import ModelError, ModelFileError
from tilewright.models.dense import DenseAttention
from tilewright.models.forward import logits_of, run_layers
from tilewright.models.gguf.model import load_gguf
from tilewright.models.rope import DivisorScaling
from tilewright.models.shape import GqaShape


def written(path: Path, **changes: Any) -> Path:
    """A tiny model with metadata changed; None leaves an entry out."""
    metadata = tiny_metadata() | {key.replace("__", "."): value for key, value in changes.items()}
    kept = {key: value for key, value in metadata.items() if value is not None}
    return write_gguf(path / "tiny.gguf", kept, tiny_tensors())


def test_the_shape_is_what_the_metadata_say(tmp_path: Path) -> None:
    shape = load_gguf(written(tmp_path, general__name="tiny")).shape
    assert isinstance(shape, GqaShape)
    assert shape.name == "tiny"
    assert (shape.layers, shape.hidden, shape.ffn, shape.vocab) == (2, 32, 64, len(TOKENS))
    assert (shape.query_heads, shape.kv_heads, shape.head_dim) == (4, 2, 8)
    assert (shape.tied, shape.query_key_norm) == (True, False)


def test_an_output_matrix_makes_the_model_untied(tmp_path: Path) -> None:
    output = np.ones((len(TOKENS), 32), np.float32)
    tensors = tiny_tensors() | {"output.weight": output}
    model = load_gguf(write_gguf(tmp_path / "untied.gguf", tiny_metadata(), tensors))
    assert not model.shape.tied
    assert np.array_equal(model.weights.output, output)


def test_qwen3_has_norms_of_queries_and_keys_and_no_permutation(tmp_path: Path) -> None:
    tensors = tiny_tensors(query_key_norm=True)
    model = load_gguf(write_gguf(tmp_path / "qwen3.gguf", tiny_metadata("qwen3"), tensors))
    attention = model.weights.layers[1].attention
    assert isinstance(model.shape, GqaShape)
    assert model.shape.query_key_norm
    assert np.array_equal(attention.query_key_value[:32], tensors["blk.1.attn_q.weight"])  # type: ignore[union-attr]


def test_divisors_of_frequencies_come_with_the_file(tmp_path: Path) -> None:
    tensors = tiny_tensors() | {"rope_freqs.weight": np.array([1, 1, 2, 8], np.float32)}
    shape = load_gguf(write_gguf(tmp_path / "long.gguf", tiny_metadata(), tensors)).shape
    assert shape.rope.scaling == DivisorScaling((1.0, 1.0, 2.0, 8.0))


def test_a_loaded_model_gives_finite_logits(tmp_path: Path) -> None:
    model = load_gguf(written(tmp_path))
    tokens = model.tokenizer.encode("the hat")
    stream = run_layers(model.weights, tokens, range(len(tokens)), DenseAttention(model.shape))
    assert np.isfinite(logits_of(model.weights, stream)).all()


WRONG = {
    "another architecture": ({"general__architecture": "mamba"}, "found architecture 'mamba'"),
    "a mixture of experts": ({"llama__expert_count": 8}, r"expert_count: found 8, expected 0"),
    "a size that is text": ({"llama__block_count": "two"}, r"block_count: found 'two'"),
    "a size of zero": ({"llama__embedding_length": 0}, r"embedding_length: found 0"),
    "too many layers": ({"llama__block_count": 3}, r"'blk\.2\.attn_q\.weight': found no such"),
    "too few layers": ({"llama__block_count": 1}, "9 tensors without a place in the model"),
    "no size": ({"llama__feed_forward_length": None}, "feed_forward_length: found no such entry"),
    "another width": ({"llama__feed_forward_length": 96}, r"found shape \[64, 32\].*\[96, 32\]"),
    "RoPE on half a head": ({"llama__rope__dimension_count": 4}, "dimension_count: found 4"),
    "a RoPE that is stretched": ({"llama__rope__scaling__type": "yarn"}, "found 'yarn'"),
    "no frequency": ({"llama__rope__freq_base": -1.0}, r"freq_base: found -1\.0"),
    "a part of a model": ({"split__count": 3}, "found a part of a model"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_does_not_fit_is_refused_with_its_reason(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        load_gguf(written(tmp_path, **changes))


def test_a_model_without_an_embedding_is_refused(tmp_path: Path) -> None:
    tensors = tiny_tensors()
    del tensors["token_embd.weight"]
    with pytest.raises(ModelFileError, match=r"token_embd\.weight: found no such tensor"):
        load_gguf(write_gguf(tmp_path / "bare.gguf", tiny_metadata(), tensors))


def test_more_tokens_than_embeddings_are_refused(tmp_path: Path) -> None:
    tensors = tiny_tensors()
    tensors["token_embd.weight"] = tensors["token_embd.weight"][:-1]
    with pytest.raises(ModelError, match=f"{len(TOKENS)} tokens, {len(TOKENS) - 1} embeddings"):
        load_gguf(write_gguf(tmp_path / "short.gguf", tiny_metadata(), tensors))
