"""The forward pass of a decoder, with the attention step passed in.

How tokens relate is the step's business alone: they may be a prompt, a piece of one, or one token
each of many sequences.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from tilewright.errors import InternalError, ModelError
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape
from tilewright.models.weights import (
    Array,
    DenseFfn,
    ExpertFfn,
    FfnWeights,
    GqaAttention,
    MlaAttention,
    ModelWeights,
    namespace_of,
)

Integers: TypeAlias = Sequence[int] | npt.NDArray[np.int64]


def feed_forward(xp: Any, inputs: Array, ffn: FfnWeights, experts: ExpertShape | None) -> Array:
    """[tokens, hidden] -> [tokens, hidden]."""
    match ffn:
        case DenseFfn():
            return _swiglu(xp, inputs, ffn)
        case ExpertFfn():
            if experts is None:
                raise InternalError("layer", "experts", "a shape that has them", "report it")
            return _run_experts(xp, inputs, ffn, experts)
        case _:
            assert_never(ffn)


def choose_experts(
    xp: Any, logits: Array, bias: Array | None, experts: ExpertShape
) -> tuple[Array, Array]:
    """Experts of each token and what their outputs are multiplied by, [tokens, active] each.

    Equal scores go to the lower expert. A group counts by its best expert under softmax, by its
    two best under sigmoid.
    """
    if experts.gate is GateKind.SOFTMAX:
        raised = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
        scores = raised / xp.sum(raised, axis=-1, keepdims=True)
    else:
        scores = _sigmoid(xp, logits)
    choice = scores if bias is None else scores + bias
    if experts.active_groups < experts.groups:
        choice = _inside_best_groups(xp, choice, experts)
    order = xp.argsort(choice, axis=-1, descending=True, stable=True)[:, : experts.active]
    weights = xp.take_along_axis(scores, order, axis=-1)
    if experts.normalized:
        weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    return order, weights * experts.scaling


def _inside_best_groups(xp: Any, choice: Array, experts: ExpertShape) -> Array:
    """Minus infinity for the experts of groups that a token does not choose."""
    grouped = xp.reshape(choice, (choice.shape[0], experts.groups, -1))
    counted = 1 if experts.gate is GateKind.SOFTMAX else min(2, grouped.shape[-1])
    best = xp.sort(grouped, axis=-1, descending=True)[..., :counted]
    order = xp.argsort(xp.sum(best, axis=-1), axis=-1, descending=True, stable=True)
    rank = xp.argsort(order, axis=-1)[..., None]
    outside = xp.full_like(grouped, -xp.inf)
    return xp.reshape(xp.where(rank < experts.active_groups, grouped, outside), choice.shape)


def _run_experts(xp: Any, inputs: Array, ffn: ExpertFfn, experts: ExpertShape) -> Array:
    chosen, weights = choose_experts(xp, inputs @ ffn.router.T, ffn.bias, experts)
    total = xp.zeros_like(inputs) if ffn.shared is None else _swiglu(xp, inputs, ffn.shared)
    for expert in range(experts.experts):
        tokens, places = xp.nonzero(chosen == expert)
        if tokens.shape[0]:
            own = DenseFfn(ffn.experts.gate_up[expert], ffn.experts.down[expert])
            part = _swiglu(xp, inputs[tokens], own)
            total[tokens] += part * weights[tokens, places][:, None]
    return total


def _swiglu(xp: Any, inputs: Array, ffn: DenseFfn) -> Array:
    joined = inputs @ ffn.gate_up.T
    width = joined.shape[-1] // 2
    gate = joined[:, :width]
    return (gate * _sigmoid(xp, gate) * joined[:, width:]) @ ffn.down.T


def _sigmoid(xp: Any, values: Array) -> Array:
    """By tanh, which does not overflow."""
    return 0.5 * xp.tanh(0.5 * values) + 0.5


class AttentionStep(Protocol):
    """Takes in the keys and values of new tokens and attends for their queries.

    Under GQA queries are [tokens, KV heads, group, head_dim], keys and values [tokens, KV heads,
    head_dim], and so is the output by query head. Under MLA queries are absorbed, [tokens, 1,
    query heads, latent_dim], keys are the latents [tokens, 1, latent_dim], there are no values,
    and the output is [tokens, 1, query heads, kv_lora_rank]. Logits are scaled by the shape's
    ``attention_scale``.
    """

    def __call__(self, layer: int, queries: Array, keys: Array, values: Array | None) -> Array: ...


LayerStep: TypeAlias = Callable[[Array, Array, Array | None], Array]
"""The attention step of one layer."""


def run_layers(
    weights: ModelWeights,
    tokens: Integers,
    positions: Integers,
    attend: AttentionStep,
) -> Array:
    """The last layer's output for each token: [tokens, hidden]."""
    shape, xp = weights.shape, namespace_of(weights.embedding)
    ids, places = _checked(shape.vocab, tokens, positions)
    stream = xp.take(weights.embedding, xp.asarray(ids), axis=0)
    turns = [xp.asarray(part.astype(np.float32)) for part in shape.rope.turns(places)]
    for index, layer in enumerate(weights.layers):
        normed = rms_norm(xp, stream, layer.attention_norm, shape.norm_eps)
        attend_layer = partial(attend, index)
        match layer.attention, shape:
            case GqaAttention(), GqaShape():
                taken = _attend_gqa(normed, turns, layer.attention, shape, attend_layer)
            case MlaAttention(), MlaShape():
                taken = _attend_mla(normed, turns, layer.attention, shape, attend_layer)
            case _:
                found = type(layer.attention).__name__
                raise InternalError(f"layer {index}", found, type(shape).__name__, "report it")
        stream = stream + taken
        normed = rms_norm(xp, stream, layer.ffn_norm, shape.norm_eps)
        stream = stream + feed_forward(xp, normed, layer.ffn, shape.experts)
    return stream


def logits_of(weights: ModelWeights, stream: Array) -> Array:
    """Next-token logits [tokens, vocab] of outputs of the last layer."""
    xp = namespace_of(stream)
    return rms_norm(xp, stream, weights.norm, weights.shape.norm_eps) @ weights.output.T


def rms_norm(xp: Any, values: Array, weight: Array, eps: float) -> Array:
    square = xp.mean(values * values, axis=-1, keepdims=True)
    return values / xp.sqrt(square + eps) * weight


def rotate(heads: Array, cosines: Array, sines: Array) -> Array:
    """Turn the last axis of [tokens, heads, width] by [tokens, width / 2]."""
    xp = namespace_of(heads)
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    cosines, sines = cosines[:, None, :], sines[:, None, :]
    return xp.concat([first * cosines - second * sines, second * cosines + first * sines], axis=-1)


def _attend_gqa(
    inputs: Array, turns: list[Array], layer: GqaAttention, shape: GqaShape, attend: LayerStep
) -> Array:
    xp, tokens, dim = namespace_of(inputs), inputs.shape[0], shape.head_dim
    heads = xp.reshape(inputs @ layer.query_key_value.T, (tokens, -1, dim))
    queries = heads[:, : shape.query_heads]
    keys = heads[:, shape.query_heads : shape.query_heads + shape.kv_heads]
    values = heads[:, shape.query_heads + shape.kv_heads :]
    if layer.query_norm is not None and layer.key_norm is not None:
        queries = rms_norm(xp, queries, layer.query_norm, shape.norm_eps)
        keys = rms_norm(xp, keys, layer.key_norm, shape.norm_eps)
    queries = xp.reshape(rotate(queries, *turns), (tokens, shape.kv_heads, shape.group, dim))
    found = attend(queries, rotate(keys, *turns), values)
    return xp.reshape(found, (tokens, shape.query_heads * dim)) @ layer.output.T


def _attend_mla(
    inputs: Array, turns: list[Array], layer: MlaAttention, shape: MlaShape, attend: LayerStep
) -> Array:
    """Absorbed: queries go down into the latent space, outputs come up from it."""
    xp = namespace_of(inputs)
    tokens, nope, eps = inputs.shape[0], shape.qk_nope_head_dim, shape.latent_norm_eps
    below = inputs
    if layer.query_down is not None and layer.query_norm is not None:
        below = rms_norm(xp, inputs @ layer.query_down.T, layer.query_norm, eps)
    queries = xp.reshape(below @ layer.query_up.T, (tokens, shape.query_heads, -1))
    by_head = xp.permute_dims(queries[..., :nope], (1, 0, 2))
    absorbed = xp.permute_dims(xp.matmul(by_head, layer.key_up), (1, 0, 2))
    queries = xp.concat([absorbed, rotate(queries[..., nope:], *turns)], axis=-1)
    latents = inputs @ layer.latent_down.T
    normed = rms_norm(xp, latents[:, : shape.kv_lora_rank], layer.latent_norm, eps)
    rotated = rotate(latents[:, None, shape.kv_lora_rank :], *turns)
    keys = xp.concat([normed[:, None, :], rotated], axis=-1)
    found = attend(queries[:, None], keys, None)[:, 0]
    values = xp.matmul(xp.permute_dims(found, (1, 0, 2)), xp.matrix_transpose(layer.value_up))
    return xp.reshape(xp.permute_dims(values, (1, 0, 2)), (tokens, -1)) @ layer.output.T


def _checked(
    vocab: int, tokens: Integers, positions: Integers
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ids, places = (np.asarray(part, dtype=np.int64) for part in (tokens, positions))
    if not ids.size or ids.shape != places.shape:
        found = f"{ids.size} tokens at {places.size} positions"
        raise ModelError("forward", found, "one position for each of one token or more", "add them")
    if ids.min() < 0 or ids.max() >= vocab:
        found = f"token {ids.min() if ids.min() < 0 else ids.max()}"
        raise ModelError("forward", found, f"0..{vocab - 1}", "use this model's tokenizer")
    return ids, places


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
