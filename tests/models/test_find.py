"""Models by what a user calls them."""

import math
import re
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.errors import ModelError
from tilewright.models import load_model
from tilewright.models.dense import DenseAttention
from tilewright.models.find import smollm2_path
from tilewright.models.forward import logits_of, run_layers
from tilewright.models.gguf.file import open_gguf
from tilewright.models.gguf.tokenizer import letters_of_bytes, tokenizer_of_gguf
from tilewright.models.model import LanguageModel, Tokenizer


@pytest.mark.parametrize("name", ["smollm3", "n" * 300, "a\0b", "/dev/zero"])
def test_a_name_that_is_no_model_is_one_error(name: str) -> None:
    with pytest.raises(ModelError, match="found no such model"):
        load_model(name)


regex: Any = import_module("regex")
WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


@cache
def vocabulary() -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    metadata = open_gguf(smollm2_path()).metadata
    tokens = {token: index for index, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    return tokens, {(left, right): rank for rank, (left, right) in enumerate(merges)}


def merged(word: str) -> list[str]:
    """Byte-pair encoding by its definition: the earliest merge first, wherever it applies."""
    _, ranks = vocabulary()
    parts = list(word)
    while len(parts) > 1:
        pairs = list(pairwise(parts))
        best = min(pairs, key=lambda pair: ranks.get(pair, math.inf))
        if best not in ranks:
            break
        place = pairs.index(best)
        parts[place : place + 2] = ["".join(best)]
    return parts


def encoded(text: str) -> list[int]:
    """Digits by themselves, then words, then merges of their bytes."""
    tokens, _ = vocabulary()
    pieces = [part for part in regex.split(r"(\p{N})", text) if part]
    words = [word for piece in pieces for word in WORDS.findall(piece)]
    letters = letters_of_bytes()
    spelled = ["".join(letters[byte] for byte in word.encode()) for word in words]
    return [tokens[part] for word in spelled for part in merged(word)]


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from(" \n\t'.,abcdefgh THE 0123456789"),
        st.characters(codec="utf-8", exclude_categories=["Cs"]),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    try:
        return tokenizer_of_gguf(open_gguf(smollm2_path()))
    except ModelError as error:
        pytest.skip(str(error))


def test_a_known_text_has_its_known_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("The capital of France is") == [504, 3575, 282, 4649, 314]


def can_spell(tokenizer: Tokenizer, text: str) -> bool:
    return tokenizer.lost_bytes.isdisjoint(text.encode())


@given(TEXTS)
def test_tokens_are_those_of_the_definition(tokenizer: Tokenizer, text: str) -> None:
    assume(can_spell(tokenizer, text))
    assert tokenizer.encode(text) == encoded(text)


@given(TEXTS)
def test_tokens_become_the_text_again_also_one_by_one(tokenizer: Tokenizer, text: str) -> None:
    assume(can_spell(tokenizer, text))
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    stream = tokenizer.stream()
    assert "".join(stream.add(token) for token in tokens) == text


def test_a_letter_without_tokens_is_refused_and_not_left_out(tokenizer: Tokenizer) -> None:
    with pytest.raises(ModelError, match=r"the letter '\\U00040000'"):
        tokenizer.encode("a \U00040000")


def test_the_end_of_a_turn_and_of_a_text_end_the_text(tokenizer: Tokenizer) -> None:
    ends = tokenizer.encode("<|endoftext|><|im_end|>")
    assert tokenizer.end_tokens == frozenset(ends) == {0, 2}


def test_plain_english_is_likelier_than_its_words_in_disorder(smollm2: LanguageModel) -> None:
    text = (
        "The committee met on Monday to discuss the new bridge across the river. Several members "
        "said that the old one could not carry the traffic of a growing town any longer."
    )
    words = np.array(re.split(r"(?<= )", text))
    shuffled = "".join(words[np.random.default_rng(1).permutation(len(words))])
    assert perplexity(smollm2, text) < 100 < perplexity(smollm2, shuffled) / 5


def perplexity(model: LanguageModel, text: str) -> float:
    tokens = model.tokenizer.encode(text)
    stream = run_layers(model.weights, tokens, range(len(tokens)), DenseAttention(model.shape))
    logits = np.asarray(logits_of(model.weights, stream), dtype=np.float64)[:-1]
    highest = logits.max(axis=-1, keepdims=True)
    normal = logits - highest - np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True))
    return math.exp(-normal[np.arange(len(tokens) - 1), tokens[1:]].mean())
