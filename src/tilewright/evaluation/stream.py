"""Queries, keys and values of a decoded sequence, as dense attention saw them.

Every flow is measured on one stream, so flows are compared on equal queries.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.models.forward import AttentionStep
from tilewright.models.weights import Array
from tilewright.serving.decode import KeptAttention

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlantedNeedle:
    """A key of the context that the queries of one step and KV head point to."""

    step: int
    layer: int
    head: int
    position: int


@dataclass(frozen=True, eq=False)
class Stream:
    """One sequence: a context, then a token for each step."""

    context_tokens: tuple[int, ...]
    context: KeptAttention
    tokens: tuple[int, ...]  # of the steps
    queries: Floats  # [steps, layers, KV heads, group, head_dim]
    keys: Floats  # [steps, layers, KV heads, head_dim]
    values: Floats | None  # None under MLA: a latent is both
    outputs: Floats  # [steps, layers, KV heads, group, value_dim], of dense attention
    scale: float
    page_size: int
    needles: tuple[PlantedNeedle, ...] = ()

    @property
    def num_layers(self) -> int:
        return int(self.keys.shape[1])

    @property
    def num_kv_heads(self) -> int:
        return int(self.keys.shape[2])

    @property
    def num_pages(self) -> int:
        """After the last step."""
        return -(-(len(self.context_tokens) + len(self.tokens)) // self.page_size)

    def with_outputs(self, outputs: Floats) -> "Stream":
        return replace(self, outputs=outputs)

    @cached_property
    def page_mass(self) -> Doubles:
        """Each page's share of the dense softmax: [steps, layers, KV heads, group, pages]."""
        return np.stack([self._layer_mass(layer) for layer in range(self.num_layers)], axis=1)

    def _layer_mass(self, layer: int) -> Doubles:
        steps, heads = len(self.tokens), self.num_kv_heads
        group, width = self.queries.shape[3:]
        before = np.asarray(self.context.keys(layer))
        keys = np.concatenate([before, self.keys[:, layer]]).transpose(1, 2, 0)
        queries = self.queries[:, layer].transpose(1, 0, 2, 3).reshape(heads, -1, width)
        logits = (queries @ keys).astype(np.float64) * self.scale
        logits = logits.reshape(heads, steps, group, -1).transpose(1, 0, 2, 3)
        later = np.arange(keys.shape[2]) > len(before) + np.arange(steps)[:, None]
        logits = np.where(later[:, None, None], -np.inf, logits)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        padded = np.zeros((*weights.shape[:-1], self.num_pages * self.page_size))
        padded[..., : weights.shape[-1]] = weights / weights.sum(-1, keepdims=True)
        mass: Doubles = padded.reshape(*weights.shape[:-1], self.num_pages, -1).sum(-1)
        return mass


class StepRecorder:
    """Goes around the attention step of a dense decoder and keeps what passes through.

    Layers come in order, a token at a time.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Floats, ...]] = []

    def around(self, step: AttentionStep) -> AttentionStep:
        def recorded(layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
            output = step(layer, queries, keys, values)
            kept = (queries, keys, values, output)
            self._rows.append(tuple(np.asarray(part)[0] for part in kept))
            return output

        return recorded

    def arrays(self, num_layers: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Queries, keys, values and outputs, each [steps, layers, ...]."""
        stacked = [np.stack(part) for part in zip(*self._rows, strict=True)]
        queries, keys, values, outputs = (
            part.reshape(-1, num_layers, *part.shape[1:]) for part in stacked
        )
        return queries, keys, values, outputs
