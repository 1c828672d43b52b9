"""A prompt that dense attention took in: what every way of decoding starts from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.models.dense import DenseAttention
from tilewright.models.forward import AttentionStep, Integers, logits_of, run_layers
from tilewright.models.namespace import Array
from tilewright.models.weights import ModelWeights

StepWrapper: TypeAlias = Callable[[AttentionStep], AttentionStep]
"""What a model does to queries, keys or values on their way to attention, such as `KeySmear`."""

PIECE_TOKENS = 512  # bounds the memory of a long prompt


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """Several decoders may start from one prompt: they copy what they need of its keys."""

    tokens: tuple[int, ...]
    attention: DenseAttention
    logits: Array  # [vocab], of the token behind the last


def run_prompt(
    weights: ModelWeights,
    tokens: Integers,
    *,
    kept_queries: int = 0,
    around: StepWrapper | None = None,
) -> Prompt:
    """``kept_queries`` of the last tokens stay readable in the prompt's attention."""
    attention = DenseAttention(weights.shape, kept_queries=kept_queries)
    step: AttentionStep = attention if around is None else around(attention)
    last: Array = None
    for start in range(0, max(len(tokens), 1), PIECE_TOKENS):  # no tokens are refused below
        piece = tokens[start : start + PIECE_TOKENS]
        last = run_layers(weights, piece, range(start, start + len(piece)), step)[-1:]
    return Prompt(tuple(int(token) for token in tokens), attention, logits_of(weights, last)[0])
