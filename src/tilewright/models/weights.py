"""Weights in the layout that the forward pass wants: [out, in], projections of one input joined.

All arrays are float32 and of one library, NumPy or torch, behind the array API; torch is never
imported here. Rotated channels are in halves (see `rope`).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar

import array_api_compat

from tilewright.models.shape import GqaShape, MlaShape

Array: TypeAlias = Any  # of the namespace at hand; the array API has no common static type
Tree = TypeVar("Tree")


def namespace_of(array: Array) -> Any:
    """The functions of the library that an array belongs to."""
    return array_api_compat.array_namespace(array)


def map_arrays(tree: Tree, function: Callable[[Array], Array]) -> Tree:
    """A copy of weights with ``function`` applied to every array in them.

    ``map_arrays(weights, torch.from_numpy)`` moves a model to torch.
    """
    found: Tree = _mapped(tree, function)
    return found


def _mapped(value: Any, function: Callable[[Array], Array]) -> Any:
    if array_api_compat.is_array_api_obj(value):
        return function(value)
    if isinstance(value, tuple):
        return tuple(_mapped(item, function) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _mapped(getattr(value, name), function) for name in names})
    return value


@dataclass(frozen=True, slots=True, eq=False)
class DenseFfn:
    """SwiGLU: ``down @ (silu(gate @ x) * (up @ x))``."""

    gate_up: Array  # [2 * width, hidden], gate first
    down: Array  # [hidden, width]


@dataclass(frozen=True, slots=True, eq=False)
class ExpertFfn:
    """Experts, the router that chooses among them, and what every token uses beside them."""

    router: Array  # [experts, hidden]
    bias: Array | None  # [experts], takes part in the choice alone
    experts: DenseFfn  # [experts, ...]
    shared: DenseFfn | None


@dataclass(frozen=True, slots=True, eq=False)
class GqaAttention:
    """Projections of grouped-query attention."""

    query_key_value: Array  # [(query heads + 2 KV heads) * head_dim, hidden]
    query_norm: Array | None  # [head_dim]
    key_norm: Array | None
    output: Array  # [hidden, query heads * head_dim]


@dataclass(frozen=True, slots=True, eq=False)
class MlaAttention:
    """Projections of latent attention; a latent's way up is cut by heads, to be absorbed."""

    query_down: Array | None  # [q_lora_rank, hidden]; None: queries come from the input
    query_norm: Array | None  # [q_lora_rank]
    query_up: Array  # [query heads * qk_head_dim, q_lora_rank or hidden]
    latent_down: Array  # [kv_lora_rank + qk_rope_head_dim, hidden]
    latent_norm: Array  # [kv_lora_rank]
    key_up: Array  # [query heads, qk_nope_head_dim, kv_lora_rank]
    value_up: Array  # [query heads, v_head_dim, kv_lora_rank]
    output: Array  # [hidden, query heads * v_head_dim]


AttentionWeights: TypeAlias = GqaAttention | MlaAttention
FfnWeights: TypeAlias = DenseFfn | ExpertFfn


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One layer: attention, then feed-forward, a norm before each."""

    attention_norm: Array  # [hidden]
    attention: AttentionWeights
    ffn_norm: Array
    ffn: FfnWeights


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelWeights:
    """A whole model. With tied weights ``output`` is the embedding itself."""

    shape: GqaShape | MlaShape
    embedding: Array  # [vocab, hidden]
    layers: tuple[LayerWeights, ...]
    norm: Array  # [hidden]
    output: Array  # [vocab, hidden]
