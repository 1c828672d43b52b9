"""Weights of a whole model from the named tensors of a file."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import assert_never

import numpy as np

from tilewright.errors import ModelFileError
from tilewright.models.shape import GateKind, GqaShape, MlaShape, ModelShape
from tilewright.models.weight_file import Floats, TensorFile
from tilewright.models.weights import (
    Array,
    AttentionWeights,
    DenseFfn,
    ExpertFfn,
    FfnWeights,
    GqaAttention,
    LayerWeights,
    MlaAttention,
    ModelWeights,
)


class Tensors:
    """Remembers what was read, so that nothing in a file goes unnoticed."""

    def __init__(self, source: TensorFile, names: Mapping[str, str]) -> None:
        self._source = source
        self._names = names  # by role; {layer} and {expert} are filled in
        self._read: set[str] = set()

    def read(self, role: str, *shape: int, layer: int = 0, expert: int = 0) -> Floats:
        name = self._names[role].format(layer=layer, expert=expert)
        self._read.add(name)
        return self._source.read(name, shape)

    def check_all_read(self, *, ignored: Iterable[str] = ()) -> None:
        """Refuse a file with more in it: a variant that the forward pass does not know.

        Names that begin as one of ``ignored`` may be left over.
        """
        prefixes = tuple(ignored)
        left = sorted(n for n in self._source.names - self._read if not n.startswith(prefixes))
        if left:
            found = f"{len(left)} tensors without a place in the model, such as {left[0]!r}"
            raise ModelFileError(self._source.where, found, "none", "choose another model")


def build_weights(shape: ModelShape, tensors: Tensors, *, pairs: bool) -> ModelWeights:
    """``pairs``: the file keeps channels that turn together side by side."""
    embedding = tensors.read("embedding", shape.vocab, shape.hidden)
    return ModelWeights(
        shape,
        embedding,
        tuple(_layer(shape, tensors, layer, pairs=pairs) for layer in range(shape.layers)),
        tensors.read("norm", shape.hidden),
        embedding if shape.tied else tensors.read("output", shape.vocab, shape.hidden),
    )


def _layer(shape: ModelShape, tensors: Tensors, layer: int, *, pairs: bool) -> LayerWeights:
    attention: AttentionWeights
    match shape:
        case GqaShape():
            attention = _gqa(shape, tensors, layer, pairs=pairs)
        case MlaShape():
            attention = _mla(shape, tensors, layer, pairs=pairs)
        case _:
            assert_never(shape)
    return LayerWeights(
        tensors.read("attention_norm", shape.hidden, layer=layer),
        attention,
        tensors.read("ffn_norm", shape.hidden, layer=layer),
        _ffn(shape, tensors, layer),
    )


def _gqa(shape: GqaShape, tensors: Tensors, layer: int, *, pairs: bool) -> GqaAttention:
    read, dim, hidden = partial(tensors.read, layer=layer), shape.head_dim, shape.hidden
    rows = {"query": shape.query_heads, "key": shape.kv_heads, "value": shape.kv_heads}
    parts = {role: read(role, heads * dim, hidden) for role, heads in rows.items()}
    norms: list[Floats | None] = [None, None]
    if shape.query_key_norm:
        norms = [read(role, dim) for role in ("query_norm", "key_norm")]
    if pairs:
        parts |= {role: split_pairs(parts[role], dim) for role in ("query", "key")}
        norms = [None if norm is None else split_pairs(norm, dim) for norm in norms]
    return GqaAttention(
        np.concatenate(list(parts.values()), axis=0),
        norms[0],
        norms[1],
        read("attention_output", hidden, shape.query_heads * dim),
    )


def _mla(shape: MlaShape, tensors: Tensors, layer: int, *, pairs: bool) -> MlaAttention:
    read = partial(tensors.read, layer=layer)
    hidden, heads, rank = shape.hidden, shape.query_heads, shape.q_lora_rank
    query_down = query_norm = None
    if rank is None:
        query_up = read("query", heads * shape.qk_head_dim, hidden)
    else:
        query_down = read("query_down", rank, hidden)
        query_norm = read("query_down_norm", rank)
        query_up = read("query_up", heads * shape.qk_head_dim, rank)
    latent_down = read("latent_down", shape.latent_dim, hidden)
    if pairs:
        query_up = _rotated_part(query_up, heads, shape.qk_rope_head_dim)
        latent_down = _rotated_part(latent_down, 1, shape.qk_rope_head_dim)
    up_dim = shape.qk_nope_head_dim + shape.v_head_dim
    up = read("latent_up", heads * up_dim, shape.kv_lora_rank)
    by_head = up.reshape(heads, up_dim, shape.kv_lora_rank)
    return MlaAttention(
        query_down,
        query_norm,
        query_up,
        latent_down,
        read("latent_norm", shape.kv_lora_rank),
        np.ascontiguousarray(by_head[:, : shape.qk_nope_head_dim]),
        np.ascontiguousarray(by_head[:, shape.qk_nope_head_dim :]),
        read("attention_output", hidden, heads * shape.v_head_dim),
    )


def split_pairs(rows: Array, width: int) -> Array:
    """Rows of a projection [heads * width, ...] from pairs side by side to two halves."""
    heads = rows.shape[0] // width
    pairs = rows.reshape(heads, width // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _rotated_part(rows: Floats, heads: int, width: int) -> Floats:
    """The last ``width`` rows of each head, from pairs to halves."""
    by_head = rows.reshape(heads, -1, rows.shape[1]).copy()
    rotated = by_head[:, -width:].reshape(heads * width, -1)
    by_head[:, -width:] = split_pairs(rotated, width).reshape(heads, width, -1)
    return by_head.reshape(rows.shape)


def _ffn(shape: ModelShape, tensors: Tensors, layer: int) -> FfnWeights:
    experts = shape.experts
    if experts is None or layer < experts.dense_layers:
        return _swiglu(tensors, "", shape.hidden, shape.ffn, layer)
    each = [
        _swiglu(tensors, "expert_", shape.hidden, experts.width, layer, expert)
        for expert in range(experts.experts)
    ]
    shared = None
    if experts.shared:
        shared = _swiglu(tensors, "shared_", shape.hidden, experts.shared * experts.width, layer)
    router, bias = tensors.read("router", experts.experts, shape.hidden, layer=layer), None
    if experts.gate is not GateKind.SOFTMAX:
        bias = tensors.read("router_bias", experts.experts, layer=layer)
    return ExpertFfn(
        router,
        bias,
        DenseFfn(np.stack([e.gate_up for e in each]), np.stack([e.down for e in each])),
        shared,
    )


def _swiglu(
    tensors: Tensors, prefix: str, hidden: int, width: int, layer: int, expert: int = 0
) -> DenseFfn:
    gate, up = (
        tensors.read(prefix + role, width, hidden, layer=layer, expert=expert)
        for role in ("gate", "up")
    )
    down = tensors.read(prefix + "down", hidden, width, layer=layer, expert=expert)
    return DenseFfn(np.concatenate([gate, up], axis=0), down)
