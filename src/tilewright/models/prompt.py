"""What every way of decoding needs: a prompt that dense attention took in, the next token."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelError
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


def choose_token(
    logits: npt.ArrayLike, *, temperature: float = 0.0, rng: np.random.Generator | None = None
) -> int:
    """The likeliest token at temperature 0, the lowest of equals; else one drawn from ``rng``.

    >>> choose_token([0.0, 2.0, 2.0])
    1
    """
    found = np.asarray(logits, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        text = f"shape {found.shape}" if found.ndim != 1 else "infinite numbers or NaN"
        expected = "finite numbers, one for each token"
        raise ModelError("logits", text, expected, "look at the weights")
    if not 0.0 <= temperature < np.inf:
        raise ModelError("temperature", f"{temperature}", "a number of 0 or more", "change it")
    if temperature == 0.0:
        return int(found.argmax())
    if rng is None:
        raise ModelError("temperature", f"{temperature}", "a generator to draw from", "pass rng")
    weights = np.exp((found - found.max()) / temperature)
    ladder = np.cumsum(weights)
    return int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))
