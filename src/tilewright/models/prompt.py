"""A prompt that dense attention took in: what every way of decoding starts from."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.models.dense import DenseAttention
from tilewright.models.forward import logits_of, run_layers
from tilewright.models.namespace import Array
from tilewright.models.weights import ModelWeights

__all__ = ("Prompt", "run_prompt")

PIECE_TOKENS = 512  # bounds the memory of a long prompt


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """Several decoders may start from one prompt: they copy what they need of its keys."""

    tokens: tuple[int, ...]
    attention: DenseAttention
    logits: Array  # [vocab], of the token behind the last


def run_prompt(weights: ModelWeights, tokens: Sequence[int], *, kept_queries: int = 0) -> Prompt:
    """``kept_queries`` of the last tokens stay readable in the prompt's attention."""
    attention = DenseAttention(weights.shape, kept_queries=kept_queries)
    last: Array = None
    for start in range(0, max(len(tokens), 1), PIECE_TOKENS):  # no tokens are refused below
        piece = tokens[start : start + PIECE_TOKENS]
        last = run_layers(weights, piece, range(start, start + len(piece)), attention)[-1:]
    return Prompt(tuple(tokens), attention, logits_of(weights, last)[0])
