"""Associative recall: a task, and a small model that was trained for it from scratch.

A sequence is pairs of a key and its value; then some of the keys come again, and the model says
the value of each. Whoever loses the page of a pair loses its answer, so the share of right answers
measures a selection without any text. ``tools/train_recall.py`` made the weights.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelError
from tilewright.models.build import Tensors, build_weights
from tilewright.models.forward import AttentionStep
from tilewright.models.rope import RopeSpec
from tilewright.models.safetensors.file import open_safetensors
from tilewright.models.safetensors.model import NAMES
from tilewright.models.shape import GqaShape
from tilewright.models.weights import Array, ModelWeights, namespace_of

NUM_KEYS = 320  # tokens 0 .. NUM_KEYS - 1
NUM_VALUES = 64  # the tokens behind them
SMEAR = "smear"
RECALL_SHAPE = GqaShape(
    name="recall",
    layers=2,
    hidden=64,
    query_heads=4,
    kv_heads=2,
    head_dim=32,
    ffn=64,
    vocab=NUM_KEYS + NUM_VALUES,
    context=1024,
    norm_eps=1e-5,
    rope=RopeSpec(base=10_000.0, width=32),
)

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RecallModel:
    """Weights, and how much of the key before it each key takes over: [layers, KV heads]."""

    weights: ModelWeights
    share: Array


@dataclass(frozen=True, slots=True, eq=False)
class RecallTask:
    """Tokens of one sequence; ``answers[i]`` is right behind the token at ``asked[i]``."""

    tokens: Int64s
    num_context: int  # tokens of the pairs that are to be remembered
    asked: Int64s  # positions of the keys that come again
    answers: Int64s


class KeySmear:
    """Keys take over a share of the key before them: a pair of tokens becomes one place.

    It goes ``around`` any attention step and remembers the last key of each layer, so that a
    sequence may be cut, and go on with another step.
    """

    def __init__(self, share: Array) -> None:
        self._share = share  # [layers, KV heads]
        self._last: dict[int, Array] = {}

    def copy(self) -> "KeySmear":
        """For a second sequence with the same past."""
        found = KeySmear(self._share)
        found._last.update(self._last)
        return found

    def around(self, step: AttentionStep) -> AttentionStep:
        def smeared(layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
            xp = namespace_of(keys)
            before = self._last.get(layer, xp.zeros_like(keys[:1]))
            self._last[layer] = keys[-1:]
            earlier = xp.concat([before, keys[:-1]], axis=0)
            keys = keys + self._share[layer][:, None] * (earlier - keys)
            return step(layer, queries, keys, values)

        return smeared


def draw_recall(rng: np.random.Generator, *, num_pairs: int, num_asked: int) -> RecallTask:
    """Keys are different, values may repeat; the asked keys come in any order."""
    if not 1 <= num_asked <= num_pairs <= NUM_KEYS:
        found = f"{num_asked} of {num_pairs} pairs asked for"
        raise ModelError("recall", found, f"some of at most {NUM_KEYS} pairs", "change them")
    keys = rng.permutation(NUM_KEYS)[:num_pairs]
    values = NUM_KEYS + rng.integers(0, NUM_VALUES, num_pairs)
    again = rng.permutation(num_pairs)[:num_asked]
    order = np.concatenate([np.arange(num_pairs), again])
    tokens = np.stack([keys[order], values[order]], axis=1).reshape(-1)
    asked = 2 * num_pairs + 2 * np.arange(num_asked)
    return RecallTask(tokens, 2 * num_pairs, asked, values[again])


def load_recall() -> RecallModel:
    """The trained model that ships with the package."""
    resource = files("tilewright.models").joinpath("data/recall.safetensors")
    with as_file(resource) as path:
        file = open_safetensors(path)
        tensors = Tensors(file, {**NAMES, SMEAR: SMEAR})
        weights = build_weights(RECALL_SHAPE, tensors, pairs=False)
        share = tensors.read(SMEAR, RECALL_SHAPE.layers, RECALL_SHAPE.kv_heads)
        tensors.check_all_read()
    return RecallModel(weights, share)
