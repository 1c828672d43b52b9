"""Dense causal attention, what sparse attention is held against, and prompts that it takes in.

Keys and values stay in memory in one piece; nothing is paged here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.models.forward import AttentionStep, Integers, logits_of, run_layers
from tilewright.models.shape import MlaShape, ModelShape
from tilewright.models.weights import Array, ModelWeights, namespace_of

QUERY_TILE = 64  # tokens whose logits are in memory together

StepWrapper: TypeAlias = Callable[[AttentionStep], AttentionStep]
"""What a model does to queries, keys or values on their way to attention, such as `KeySmear`."""

PIECE_TOKENS = 512  # bounds the memory of a long prompt


class DenseAttention:
    """One sequence. Each call appends its tokens to a layer and attends to all there are.

    ``kept_queries`` of the last tokens stay readable, for flows that look at a prompt's end.
    """

    def __init__(self, shape: ModelShape, *, kept_queries: int = 0) -> None:
        self._scale = shape.attention_scale
        self._value_dim = shape.kv_lora_rank if isinstance(shape, MlaShape) else shape.head_dim
        self._kept_queries = kept_queries
        self._keys: list[Grown] = [Grown() for _ in range(shape.layers)]
        self._values: list[Grown] = [Grown() for _ in range(shape.layers)]
        self._queries: list[Array | None] = [None] * shape.layers

    def __call__(self, layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
        xp = namespace_of(queries)
        if self._kept_queries:
            before = self._queries[layer]
            joined = queries if before is None else xp.concat([before, queries], axis=0)
            self._queries[layer] = joined[-self._kept_queries :]
        all_keys = self._keys[layer].append(xp, keys)
        if values is None:
            all_values = all_keys[..., : self._value_dim]
        else:
            all_values = self._values[layer].append(xp, values)
        return _attend(xp, queries, all_keys, all_values, self._scale)

    def keys(self, layer: int) -> Array:
        """[tokens, heads, width]; under MLA the latents."""
        return self._keys[layer].by_token()

    def values(self, layer: int) -> Array | None:
        """[tokens, heads, width]; None under MLA."""
        found = self._values[layer]
        return None if found.rows is None else found.by_token()

    def queries(self, layer: int) -> Array:
        """Queries of the last tokens, no more than were to be kept."""
        return self._queries[layer]


class Grown:
    """Rows [heads, tokens, width] that grow by tokens, in memory that doubles."""

    def __init__(self) -> None:
        self.rows: Array | None = None
        self._num_tokens = 0

    def append(self, xp: Any, tokens: Array) -> Array:
        """Add [tokens, heads, width] and return all there are."""
        first, self._num_tokens = self._num_tokens, self._num_tokens + tokens.shape[0]
        if self.rows is None or self._num_tokens > self.rows.shape[1]:
            shape = (tokens.shape[1], 2 * self._num_tokens, tokens.shape[2])
            rows = xp.zeros(shape, dtype=tokens.dtype)
            if self.rows is not None:
                rows[:, :first] = self.rows[:, :first]
            self.rows = rows
        self.rows[:, first : self._num_tokens] = xp.permute_dims(tokens, (1, 0, 2))
        return self.rows[:, : self._num_tokens]

    def by_token(self) -> Array:
        rows: Any = self.rows
        return namespace_of(rows).permute_dims(rows[:, : self._num_tokens], (1, 0, 2))


def _attend(xp: Any, queries: Array, keys: Array, values: Array, scale: float) -> Array:
    """Queries [tokens, heads, group, width] of the last tokens over keys [heads, tokens, width]."""
    tokens, heads, group, width = queries.shape
    first = keys.shape[1] - tokens
    scaled = queries * scale
    parts = []
    for start in range(0, tokens, QUERY_TILE):
        stop = min(start + QUERY_TILE, tokens)
        tile = xp.reshape(xp.permute_dims(scaled[start:stop], (1, 0, 2, 3)), (heads, -1, width))
        seen = first + stop
        logits = tile @ xp.matrix_transpose(keys[:, :seen])
        if stop - start > 1:
            _hide_later(xp, logits, stop - start, group)
        logits -= xp.max(logits, axis=-1, keepdims=True)
        weights = xp.exp(logits)
        found = (weights @ values[:, :seen]) / xp.sum(weights, axis=-1, keepdims=True)
        found = xp.reshape(found, (heads, stop - start, group, -1))
        parts.append(xp.permute_dims(found, (1, 0, 2, 3)))
    return xp.concat(parts, axis=0)


def _hide_later(xp: Any, logits: Array, tokens: int, group: int) -> None:
    """Minus infinity where a token would see one after itself: the last columns of the tile."""
    own = xp.arange(tokens * group) // group
    later = xp.arange(tokens)[None, :] > own[:, None]
    tail = logits[..., -tokens:]
    logits[..., -tokens:] = xp.where(later, xp.full_like(tail, -xp.inf), tail)


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
