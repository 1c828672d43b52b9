"""Shapes of language models as data: counts and widths, without any weights."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

from tilewright.errors import ModelError
from tilewright.models.rope import RopeSpec

MOST_LAYERS = 10_000  # a bound on what a file can make us look for


class GateKind(StrEnum):
    """What a router turns its logits into."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"  # with a bias that takes part in the choice, not in the weight


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShape:
    """Feed-forward experts of the layers behind the first ``dense_layers``.

    Experts stand in ``groups``; a token chooses ``active_groups`` of them first, then ``active``
    experts inside. Their weights are ``normalized`` to sum 1 if so, and multiplied by ``scaling``.
    """

    experts: int
    active: int
    width: int  # hidden channels of one expert
    shared: int = 0  # experts that every token uses, beside the chosen ones
    dense_layers: int = 0
    gate: GateKind = GateKind.SOFTMAX
    groups: int = 1
    active_groups: int = 1
    normalized: bool = True
    scaling: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "experts", "active", "width", "groups", "active_groups")
        if self.experts % self.groups or self.active_groups > self.groups:
            found = f"{self.experts} experts, {self.active_groups} of {self.groups} groups"
            raise ModelError("shape.experts", found, "equal groups", "correct the shape")
        if self.active > self.experts // self.groups * self.active_groups:
            found = f"{self.active} of {self.experts} experts"
            raise ModelError("shape.experts", found, "no more than there are", "correct the shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class _DecoderShape:
    """What every decoder has: RMS norms, RoPE, feed-forward layers or experts."""

    name: str
    layers: int
    hidden: int
    query_heads: int
    ffn: int  # hidden channels of a dense feed-forward layer
    vocab: int
    context: int  # tokens that the model was made for
    norm_eps: float
    rope: RopeSpec
    tied: bool = False  # logits come from the embedding
    experts: ExpertShape | None = None

    def _check(self, rotated: int, *counts: str) -> None:
        """Refuse counts below 1, and RoPE on other than the ``rotated`` channels of a head."""
        _check_positive(self, "layers", "hidden", "query_heads", *counts, "vocab")
        if self.rope.width != rotated:
            found = f"RoPE on {self.rope.width} of {rotated} channels"
            raise ModelError(f"shape {self.name}", found, "on all of them", "correct the shape")

    @property
    @abstractmethod
    def attention_parameters(self) -> int:
        """Weights of one layer's attention with the norms inside it."""

    @property
    def num_parameters(self) -> int:
        return self._parameters(all_experts=True)

    @property
    def active_parameters(self) -> int:
        """Weights that one token meets."""
        return self._parameters(all_experts=False)

    def _parameters(self, *, all_experts: bool) -> int:
        """Return the weights with all experts, or with those that a token chooses."""
        experts = self.experts
        dense_layers = self.layers if experts is None else experts.dense_layers
        total = dense_layers * 3 * self.hidden * self.ffn
        if experts is not None:
            met = experts.experts if all_experts else experts.active
            used = 3 * self.hidden * experts.width * (met + experts.shared)
            total += (self.layers - dense_layers) * (used + experts.experts * self.hidden)
        total += self.layers * (self.attention_parameters + 2 * self.hidden)
        return total + self.hidden * (1 + self.vocab * (1 if self.tied else 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class GqaShape(_DecoderShape):
    """A decoder of the Llama family: RMS norm, RoPE, grouped-query attention, SwiGLU.

    >>> GqaShape(name="tiny", layers=1, hidden=8, query_heads=4, kv_heads=2, head_dim=2, ffn=16,
    ...          vocab=10, context=64, norm_eps=1e-5, rope=RopeSpec(base=1e4, width=2)).group
    2
    """

    kv_heads: int
    head_dim: int
    query_key_norm: bool = False  # queries and keys are normalised head by head, before RoPE

    def __post_init__(self) -> None:
        self._check(self.head_dim, "kv_heads", "head_dim")
        if self.query_heads % self.kv_heads:
            found = f"{self.query_heads} query heads, {self.kv_heads} KV heads"
            raise ModelError(f"shape {self.name}", found, "a multiple", "correct the shape")

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.query_heads // self.kv_heads

    @property
    def attention_scale(self) -> float:
        return self.rope.logit_factor / math.sqrt(self.head_dim)

    @property
    def attention_parameters(self) -> int:
        heads = 2 * self.query_heads + 2 * self.kv_heads
        norms = 2 * self.head_dim if self.query_key_norm else 0
        return heads * self.head_dim * self.hidden + norms


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaShape(_DecoderShape):
    """A decoder with latent attention: one latent and one rotated key a token, for all heads."""

    q_lora_rank: int | None  # None: queries are projected directly
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    latent_norm_eps: float = 1e-6  # of the norms inside attention
    kv_heads: ClassVar[int] = 1  # one latent for all query heads

    def __post_init__(self) -> None:
        self._check(self.qk_rope_head_dim, "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")

    @property
    def qk_head_dim(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def latent_dim(self) -> int:
        """What a token adds to the cache: latent and rotated key."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def attention_scale(self) -> float:
        return self.rope.logit_factor / math.sqrt(self.qk_head_dim)

    @property
    def attention_parameters(self) -> int:
        queries = self.query_heads * self.qk_head_dim
        if self.q_lora_rank is None:
            query = self.hidden * queries
        else:
            query = self.q_lora_rank * (self.hidden + 1 + queries)
        heads = self.query_heads * (self.qk_nope_head_dim + self.v_head_dim)
        latent = self.hidden * self.latent_dim + self.kv_lora_rank * (1 + heads)
        return query + latent + self.query_heads * self.v_head_dim * self.hidden


ModelShape: TypeAlias = GqaShape | MlaShape


def _check_positive(shape: object, *names: str) -> None:
    for name in names:
        value = getattr(shape, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            expected, fix = "a whole number of 1 or more", "correct the shape"
            raise ModelError(f"shape.{name}", repr(value), expected, fix)
