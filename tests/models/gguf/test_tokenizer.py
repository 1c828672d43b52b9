from pathlib import Path
from typing import Any

import pytest

from tests.models.gguf_making import TOKENS, tiny_metadata, tiny_tensors, write_gguf
from tilewright.errors import ModelFileError
from tilewright.models.gguf.file import open_gguf
from tilewright.models.gguf.tokenizer import tokenizer_of_gguf
from tilewright.models.model import Tokenizer


def tokenizer(path: Path, **changes: Any) -> Tokenizer:
    entries = {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    file = write_gguf(path / "tiny.gguf", tiny_metadata() | entries, tiny_tensors())
    return tokenizer_of_gguf(open_gguf(file))


def words(made: Tokenizer, text: str) -> list[str]:
    return [TOKENS[token] for token in made.encode(text)]


def test_merges_apply_in_their_order_and_spaces_belong_to_words(tmp_path: Path) -> None:
    assert words(tokenizer(tmp_path), "the the") == ["t", "he", "Ġthe"]


def test_control_tokens_in_a_text_are_themselves_and_have_no_text(tmp_path: Path) -> None:
    made = tokenizer(tmp_path)
    assert words(made, "he<|im_end|>") == ["he", "<|im_end|>"]
    assert made.decode(made.encode("he<|im_end|>")) == "he"


def test_a_text_ends_at_the_end_of_a_turn_and_of_a_text(tmp_path: Path) -> None:
    assert tokenizer(tmp_path).end_tokens == {0, 1}


def test_a_first_token_is_put_in_front_if_the_file_says_so(tmp_path: Path) -> None:
    made = tokenizer(tmp_path, add_bos_token=True, bos_token_id=0)
    assert words(made, "he") == ["<|endoftext|>", "he"]


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("gpt-2", ["a", "Ġ", "1", "2", "3", "4"]),
        ("smollm", ["a", "Ġ", "1", "2", "3", "4"]),
        ("llama-bpe", ["a", "Ġ", "1", "2", "3", "4"]),
        ("qwen2", ["a", "Ġ", "1", "2", "3", "4"]),
    ],
)
def test_every_known_way_to_cut_words_keeps_the_letters(
    pre: str, expected: list[str], tmp_path: Path
) -> None:
    made = tokenizer(tmp_path, pre=pre)
    assert words(made, "a 1234") == expected
    assert made.decode(made.encode("a 1234")) == "a 1234"


def test_ways_to_cut_words_differ_in_their_digits(tmp_path: Path) -> None:
    cut = {
        pre: [
            part
            for part, _ in tokenizer(tmp_path, pre=pre).library.pre_tokenizer.pre_tokenize_str(
                "x 12345"
            )
        ]
        for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2")
    }
    assert cut == {
        "gpt-2": ["x", "Ġ12345"],
        "smollm": ["x", "Ġ", "1", "2", "3", "4", "5"],
        "llama-bpe": ["x", "Ġ", "123", "45"],
        "qwen2": ["x", "Ġ", "1", "2", "3", "4", "5"],
    }


WRONG = {
    "another model": ({"model": "llama"}, r"ggml\.model: found 'llama'"),
    "an unknown cut": ({"pre": "bloom"}, r"ggml\.pre: found 'bloom'"),
    "spaces in front": ({"add_space_prefix": True}, "add_space_prefix: found true"),
    "tokens that are numbers": ({"tokens": [1, 2]}, "tokens: found .* a list of strings"),
    "a token twice": ({"tokens": ["a"] * len(TOKENS)}, "tokens: found a token twice"),
    "types of other tokens": ({"token_type": [1, 1]}, "a number for every token"),
    "a merge of three": ({"merges": ["a b c"]}, "a merge of other than two tokens"),
    "a merge of nothing known": ({"merges": ["he zz"]}, "merges of known tokens"),
    "an end beyond the tokens": ({"eos_token_id": 5000}, "eos_token_id: found 5000"),
    "an end that is text": ({"eos_token_id": "end"}, "eos_token_id: found 'end'"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_a_tokenizer_that_does_not_fit_is_refused_with_its_reason(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        tokenizer(tmp_path, **changes)
