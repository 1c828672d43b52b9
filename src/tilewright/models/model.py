"""A language model that is ready to run: weights and tokenizer together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewright.errors import MissingExtraError, ModelError
from tilewright.models.shape import ModelShape
from tilewright.models.weights import ModelWeights


def load_library(name: str, *, where: str) -> Any:
    """A library by name. ``where`` says what needs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(where, name, "models") from error


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tokenizer:
    """``library`` is a ``tokenizers.Tokenizer``; ``end_tokens`` end a generated text."""

    library: Any
    end_tokens: frozenset[int]
    first_token: int | None = None  # put in front of every text
    lost_bytes: frozenset[int] = frozenset()  # of UTF-8, for which the vocabulary has no token

    def __repr__(self) -> str:
        return f"<Tokenizer of {self.num_tokens} tokens>"

    @property
    def num_tokens(self) -> int:
        return int(self.library.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        """Control tokens in the text become themselves. What has no token is refused."""
        for letter in text if self.lost_bytes else "":
            if not self.lost_bytes.isdisjoint(letter.encode()):  # the library would leave it out
                fix = "remove it, or choose another model"
                raise ModelError("prompt", f"the letter {letter!a}", "letters with tokens", fix)
        ids: list[int] = self.library.encode(text).ids  # with what its own rules put around
        return ids if self.first_token is None else [self.first_token, *ids]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; control tokens have none."""
        text: str = self.library.decode(list(tokens), skip_special_tokens=True)
        return text

    def stream(self, before: Iterable[int] = ()) -> "TextStream":
        """Text that grows by a token at a time, behind ``before``."""
        return TextStream(self.library, tuple(before))


class TextStream:
    """Letters are given out when all of their bytes are there."""

    def __init__(self, library: Any, before: tuple[int, ...]) -> None:
        decoders = load_library("tokenizers.decoders", where="text stream")
        self._library = library
        self._stream = decoders.DecodeStream(ids=list(before), skip_special_tokens=True)

    def add(self, token: int) -> str:
        """The letters that are complete with this token, often none."""
        return self._stream.step(self._library, token) or ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LanguageModel:
    """Tokens of the tokenizer are rows of the embedding."""

    weights: ModelWeights
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        tokens, rows = self.tokenizer.num_tokens, self.weights.shape.vocab
        if tokens > rows:
            found = f"{tokens} tokens, {rows} embeddings"
            expected, fix = "an embedding for every token", "choose another model"
            raise ModelError(f"model {self.shape.name!r}", found, expected, fix)

    def __repr__(self) -> str:
        return f"<LanguageModel {self.shape.name!r}>"

    @property
    def shape(self) -> ModelShape:
        return self.weights.shape
