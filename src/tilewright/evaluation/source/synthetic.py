"""Random keys with topics and planted needles: no model, and any length in seconds."""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.attention.graph import DType, FlowKind, Geometry
from tilewright.evaluation.source.base import Case, Source, SourceSpec, generator_of
from tilewright.evaluation.stream import Floats, PlantedNeedle, Stream, dense_outputs
from tilewright.models.weights import Array
from tilewright.records.attention.compare import SourceFigures
from tilewright.serving.model_flow import plan_dense, stand_in_for, trace_for_model

LAYERS = 2
KV_HEADS, GROUP, HEAD_DIM = 2, 4, 64
LATENT_GROUP, LATENT_VALUE, LATENT_ROPE = 16, 512, 64  # as DeepSeek-V2-Lite has them
LOUD_STRIDE = 9  # one channel of a latent in so many is loud: as many as a head of GQA has
QUIET = 0.1  # the others, against a loud one
TOPIC_TOKENS = 32  # neighbours that share a direction
TOPIC_SHARE = 0.6  # of the length of a key; the rest is its own
GROUP_NOISE = 0.25  # how far the queries of one group are apart
NEEDLE_LOGIT = 0.5  # beyond the logarithm of the context: about as much as all other keys


@dataclass(frozen=True, slots=True, eq=False)
class DrawnContext:
    """Keys, values and last queries of a context, by layer: [tokens, heads, ...]."""

    all_keys: Floats
    all_values: Floats | None
    all_queries: Floats | None

    def keys(self, layer: int) -> Array:
        return self.all_keys[layer]

    def values(self, layer: int) -> Array | None:
        return None if self.all_values is None else self.all_values[layer]

    def queries(self, layer: int) -> Array | None:
        return None if self.all_queries is None else self.all_queries[layer]


class SyntheticSource(Source):
    """Tokens of a neighbourhood have a topic; each step has a needle in every KV head.

    Under MLA a key is a latent, which is its value, too, and there is one KV head. Few of its many
    channels are loud: with all of them alike, no summary of a page could tell one key.
    """

    def __init__(self, spec: SourceSpec) -> None:
        self._spec = spec
        self.num_layers = LAYERS
        dtypes = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
        if spec.kind is FlowKind.MLA:
            self.num_kv_heads = 1
            self.geometry = Geometry.mla(
                page_size=spec.page_size,
                kv_lora_rank=LATENT_VALUE,
                qk_rope_head_dim=LATENT_ROPE,
                query_heads=LATENT_GROUP,
                **dtypes,
            )
        else:
            self.num_kv_heads = KV_HEADS
            self.geometry = Geometry.gqa(
                page_size=spec.page_size, head_dim=HEAD_DIM, query_heads=GROUP, **dtypes
            )

    @property
    def figures(self) -> SourceFigures:
        return SourceFigures(
            name="synthetic", model=None, model_hash=None, text=None, text_hash=None
        )

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, draw = self._spec, Draw(generator_of(self._spec, index), self._loudness())
        tokens, heads = spec.context + spec.steps, self.num_kv_heads
        group = self.geometry.query_heads
        scale = 1.0 / math.sqrt(self.geometry.key_dim)
        keys = _draw_keys(draw, tokens, heads)
        values = None if spec.kind is FlowKind.MLA else draw.normal(LAYERS, tokens, heads)
        centre = draw.normal(spec.steps, LAYERS, heads, 1)
        queries = centre + GROUP_NOISE * draw.normal(spec.steps, LAYERS, heads, group)
        needles = _plant(draw.rng, spec, keys, centre, scale)
        seen = min(kept_queries, spec.context)
        observed = draw.normal(LAYERS, seen, heads, group) if seen else None
        kept_values = None if values is None else values[:, : spec.context]
        stream = Stream(
            tuple(range(spec.context)),
            DrawnContext(keys[:, : spec.context], kept_values, observed),
            tuple(range(spec.context, tokens)),
            queries,
            _of_steps(keys, spec),
            None if values is None else _of_steps(values, spec),
            outputs=np.zeros_like(queries[..., : self.geometry.value_dim]),
            scale=scale,
            page_size=spec.page_size,
            needles=needles,
        )
        graph = trace_for_model(stand_in_for(self.geometry.kind), self.geometry)[1]
        dense = dense_outputs(stream, graph, plan_dense(LAYERS, spec.reserved))
        return Case(replace(stream, outputs=dense), words=None)

    def _loudness(self) -> Floats:
        """Of each channel of queries, keys and values; logits have a variance of about 1."""
        width = self.geometry.key_dim
        loudness = np.ones(width, dtype=np.float32)
        if self._spec.kind is FlowKind.MLA:
            loudness[np.arange(width) % LOUD_STRIDE != 0] = QUIET
        return loudness * np.float32((width / (loudness**4).sum()) ** 0.25)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Normal vectors, channel by channel as loud as they should be."""

    rng: np.random.Generator
    loudness: Floats

    def normal(self, *sizes: int) -> Floats:
        sizes = (*sizes, len(self.loudness))
        return self.rng.standard_normal(sizes, dtype=np.float32) * self.loudness


def _of_steps(drawn: Floats, spec: SourceSpec) -> Floats:
    """[steps, layers, heads, width] of [layers, tokens, heads, width]."""
    return drawn[:, spec.context :].transpose(1, 0, 2, 3)


def _draw_keys(draw: Draw, tokens: int, heads: int) -> Floats:
    topics = draw.normal(LAYERS, -(-tokens // TOPIC_TOKENS), heads)
    shared = np.repeat(topics, TOPIC_TOKENS, axis=1)[:, :tokens]
    own = draw.normal(LAYERS, tokens, heads)
    return np.float32(TOPIC_SHARE) * shared + np.float32(math.sqrt(1 - TOPIC_SHARE**2)) * own


def _plant(
    rng: np.random.Generator, spec: SourceSpec, keys: Floats, centre: Floats, scale: float
) -> tuple[PlantedNeedle, ...]:
    """Put a key along each step's query somewhere into the context."""
    logit = math.log(spec.context) + NEEDLE_LOGIT
    needles = []
    for step, layer, head in np.ndindex(centre.shape[:3]):
        position, direction = int(rng.integers(0, spec.context)), centre[step, layer, head, 0]
        length = logit / (scale * float(direction @ direction))
        keys[layer, position, head] = direction * np.float32(length)
        needles.append(PlantedNeedle(step, layer, head, position))
    return tuple(needles)
