"""A language model that is ready to run: weights and tokenizer together."""

from dataclasses import dataclass

from tilewright.errors import ModelError
from tilewright.models.shape import ModelShape
from tilewright.models.tokenizer import Tokenizer
from tilewright.models.weights import ModelWeights


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
