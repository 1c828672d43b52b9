"""Byte-level BPE tokenizers from the vocabulary and merges in a GGUF file."""

from typing import Any

from tilewright.models.gguf.file import GgufFile
from tilewright.models.model import Tokenizer, load_library

PREFIX = "tokenizer.ggml."
CONTROL, USER_DEFINED = 3, 4  # token types
END_OF_TEXT = "<|endoftext|>"  # ends a text in chat models too, whose own end is that of a turn

LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_WORDS = LLAMA3_WORDS.replace(r"\p{N}{1,3}", r"\p{N}")


WORDS = {"llama-bpe": LLAMA3_WORDS, "qwen2": QWEN2_WORDS}
SPLITTERS = ("gpt-2", "llama-bpe", "qwen2", "smollm")


def splitter_of(library: Any, name: str) -> Any:
    """Return what cuts a text into words before merges, by the name in the file."""
    pre = library.pre_tokenizers
    if name in WORDS:
        words = pre.Split(library.Regex(WORDS[name]), behavior="isolated")
        return pre.Sequence([words, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    plain = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        return pre.Sequence([pre.Digits(individual_digits=True), plain])
    return plain


def tokenizer_of_gguf(file: GgufFile) -> Tokenizer:
    """Raises ModelFileError for kinds of tokenizers that are not known, or lists that disagree."""
    source = TokenizerSource(file)
    library = load_library("tokenizers", where=f"the tokenizer of {file.path}")
    made = source.built(library)
    first = source.token_id("bos_token_id") if source.entries.flag("add_bos_token", False) else None
    lost = [byte for byte, letter in letters_of_bytes().items() if letter not in source.tokens]
    return Tokenizer(made, source.end_tokens(), first, frozenset(lost))


def letters_of_bytes() -> dict[int, str]:
    """How byte-level vocabularies spell bytes: printable ones as they are, others from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    spelled = {byte: chr(byte) for byte in plain}
    return spelled | {byte: chr(256 + index) for index, byte in enumerate(others)}


class TokenizerSource:
    """The tokenizer's entries in the metadata, checked against each other."""

    def __init__(self, file: GgufFile) -> None:
        self.entries = entries = file.entries.below(PREFIX)
        if entries.value("model") != "gpt2":
            raise entries.fail("model", repr(entries.value("model")), "'gpt2', byte-level BPE")
        self._pre = entries.value("pre")
        if self._pre not in SPLITTERS:
            raise entries.fail("pre", repr(self._pre), f"one of {', '.join(SPLITTERS)}")
        if entries.flag("add_space_prefix", False):
            raise entries.fail("add_space_prefix", "true", "false")
        self.tokens = self._texts("tokens")
        self.types = entries.value("token_type", [1] * len(self.tokens))
        if not isinstance(self.types, list) or len(self.types) != len(self.tokens):
            found = repr(self.types)[:40]
            raise entries.fail("token_type", found, "a number for every token")

    def built(self, library: Any) -> Any:
        vocabulary = {token: index for index, token in enumerate(self.tokens)}
        if len(vocabulary) != len(self.tokens):
            raise self.entries.fail("tokens", "a token twice", "each token once")
        merges = [tuple(merge.split(" ")) for merge in self._texts("merges")]
        if any(len(merge) != 2 for merge in merges):
            raise self.entries.fail(
                "merges", "a merge of other than two tokens", "two with a space"
            )
        ignore = self._pre == "llama-bpe"
        try:
            model = library.models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore)
        except Exception as error:  # the library raises no narrower class
            raise self.entries.fail("merges", str(error), "merges of known tokens") from error
        made = library.Tokenizer(model)
        made.pre_tokenizer = splitter_of(library, self._pre)
        made.decoder = library.decoders.ByteLevel()
        if self._pre == "qwen2":
            made.normalizer = library.normalizers.NFC()
        made.add_special_tokens(self._of_type(library, CONTROL))
        made.add_tokens(self._of_type(library, USER_DEFINED))
        return made

    def token_id(self, name: str) -> int:
        value = self.entries.value(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.entries.fail(name, repr(value), "the number of a token")
        if not 0 <= value < len(self.tokens):
            raise self.entries.fail(name, f"{value}", f"a token below {len(self.tokens)}")
        return value

    def end_tokens(self) -> frozenset[int]:
        ends = {self.token_id("eos_token_id")}
        if self.entries.has("eot_token_id"):
            ends.add(self.token_id("eot_token_id"))
        if END_OF_TEXT in self.tokens:
            ends.add(self.tokens.index(END_OF_TEXT))
        return frozenset(ends)

    def _of_type(self, library: Any, kind: int) -> list[Any]:
        return [
            library.AddedToken(token, special=kind == CONTROL, normalized=False)
            for token, found in zip(self.tokens, self.types, strict=True)
            if found == kind
        ]

    def _texts(self, name: str) -> list[str]:
        value = self.entries.value(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.entries.fail(name, repr(value)[:40], "a list of strings")
        return value
