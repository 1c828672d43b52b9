from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.models.tiny import gqa_shape, mla_shape
from tilewright.models.dense import DenseAttention

Floats = npt.NDArray[np.float32]


def drawn(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def expected_output(queries: Floats, keys: Floats, values: Floats, scale: float) -> Floats:
    """By definition, in float64: query i of the last tokens sees the keys up to its own."""
    first = len(keys) - len(queries)
    found = np.zeros((*queries.shape[:3], values.shape[-1]))
    for token, head, member in np.ndindex(*queries.shape[:3]):
        seen = first + token + 1
        logits = keys[:seen, head].astype(np.float64) @ queries[token, head, member] * scale
        weights = np.exp(logits - logits.max())
        found[token, head, member] = weights @ values[:seen, head] / weights.sum()
    return found.astype(np.float32)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_every_token_sees_itself_and_what_stands_before_it(pieces: list[int], seed: int) -> None:
    shape = gqa_shape()
    total = sum(pieces)
    queries = drawn(seed, total, 2, 3, 8)
    keys, values = drawn(seed + 1, total, 2, 8), drawn(seed + 2, total, 2, 8)
    attention, start = DenseAttention(shape), 0
    for piece in pieces:
        part = slice(start, start + piece)
        found = attention(1, queries[part], keys[part], values[part])
        expected = expected_output(
            queries[part], keys[: part.stop], values[: part.stop], shape.attention_scale
        )
        assert np.abs(found - expected).max() <= 1e-5
        start = part.stop
    assert np.array_equal(attention.keys(1), keys)
    assert np.array_equal(np.asarray(attention.values(1)), values)


def test_a_latent_is_key_and_value() -> None:
    shape = mla_shape()
    latents, queries = drawn(1, 9, 1, 20), drawn(2, 9, 1, 4, 20)
    attention = DenseAttention(shape)
    found = attention(0, queries, latents, None)
    expected = expected_output(queries, latents, latents[..., :16], shape.attention_scale)
    assert np.abs(found - expected).max() <= 1e-5
    assert attention.values(0) is None


def test_layers_do_not_mix() -> None:
    attention = DenseAttention(gqa_shape())
    for layer in range(2):
        attention(layer, drawn(layer, 3, 2, 3, 8), drawn(layer, 3, 2, 8), drawn(layer, 3, 2, 8))
    assert np.array_equal(attention.keys(1), drawn(1, 3, 2, 8))


@pytest.mark.parametrize("kept", [1, 5, 100])
def test_the_last_queries_stay_readable(kept: int) -> None:
    attention = DenseAttention(gqa_shape(), kept_queries=kept)
    queries = drawn(5, 12, 2, 3, 8)
    for part in (slice(0, 4), slice(4, 11), slice(11, 12)):
        attention(0, queries[part], drawn(6, 12, 2, 8)[part], drawn(7, 12, 2, 8)[part])
    assert np.array_equal(attention.queries(0), queries[-kept:])


def test_no_queries_stay_unless_asked_for() -> None:
    attention = DenseAttention(gqa_shape())
    attention(0, drawn(5, 2, 2, 3, 8), drawn(6, 2, 2, 8), drawn(7, 2, 2, 8))
    assert attention.queries(0) is None


def test_torch_arrays_give_the_same_output() -> None:
    arrays = drawn(1, 70, 2, 3, 8), drawn(2, 70, 2, 8), drawn(3, 70, 2, 8)
    expected = DenseAttention(gqa_shape())(0, *arrays)
    tensors: list[Any] = [torch.from_numpy(array) for array in arrays]
    found = DenseAttention(gqa_shape())(0, *tensors)
    assert isinstance(found, torch.Tensor)
    assert np.abs(found.numpy() - expected).max() <= 1e-5
