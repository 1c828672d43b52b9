"""Random keys with topics and planted needles: no model, and any length in seconds."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.evaluation.replay import dense_outputs
from tilewright.evaluation.source import Case, SourceSpec, generator_of
from tilewright.evaluation.stream import PlantedNeedle, Stream
from tilewright.models.namespace import Array
from tilewright.records.attention_compare import SourceFigures
from tilewright.serving.model_flow import plan_dense, stand_in_for, trace_for_model

__all__ = ("SyntheticSource",)

Floats = npt.NDArray[np.float32]

LAYERS, KV_HEADS, GROUP, HEAD_DIM = 2, 2, 4, 64
TOPIC_TOKENS = 32  # neighbours that share a direction
TOPIC_SHARE = 0.6  # of the length of a key; the rest is its own
GROUP_NOISE = 0.25  # how far the queries of one group are apart
NEEDLE_LOGIT = 0.5  # beyond the logarithm of the context: about as much as all other keys


@dataclass(frozen=True, slots=True, eq=False)
class DrawnContext:
    """Keys, values and last queries of a context, by layer: [tokens, heads, ...]."""

    all_keys: Floats
    all_values: Floats
    all_queries: Floats | None

    def keys(self, layer: int) -> Array:
        return self.all_keys[layer]

    def values(self, layer: int) -> Array:
        return self.all_values[layer]

    def queries(self, layer: int) -> Array | None:
        return None if self.all_queries is None else self.all_queries[layer]


class SyntheticSource:
    """Tokens of a neighbourhood have a topic; each step has a needle in every KV head."""

    def __init__(self, spec: SourceSpec) -> None:
        self._spec = spec

    @property
    def figures(self) -> SourceFigures:
        return SourceFigures(
            name="synthetic", model=None, model_hash=None, text=None, text_hash=None
        )

    @property
    def geometry(self) -> Geometry:
        dtypes = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
        return Geometry.gqa(
            page_size=self._spec.page_size, head_dim=HEAD_DIM, query_heads=GROUP, **dtypes
        )

    @property
    def num_layers(self) -> int:
        return LAYERS

    def draw(self, index: int, *, kept_queries: int) -> Case:
        spec, rng = self._spec, generator_of(self._spec, index)
        scale = 1.0 / math.sqrt(HEAD_DIM)
        keys, values = _draw_keys(rng, spec), _normal(rng, LAYERS, _length(spec), KV_HEADS)
        centre = _normal(rng, spec.steps, LAYERS, KV_HEADS, 1)
        queries = centre + GROUP_NOISE * _normal(rng, spec.steps, LAYERS, KV_HEADS, GROUP)
        needles = _plant(rng, spec, keys, centre, scale)
        seen = min(kept_queries, spec.context)
        observed = _normal(rng, LAYERS, seen, KV_HEADS, GROUP) if seen else None
        context = DrawnContext(keys[:, : spec.context], values[:, : spec.context], observed)
        given = (
            queries,
            keys[:, spec.context :].transpose(1, 0, 2, 3),
            values[:, spec.context :].transpose(1, 0, 2, 3),
        )
        stream = Stream(
            tuple(range(spec.context)),
            context,
            tuple(range(spec.context, _length(spec))),
            *given,
            outputs=np.zeros_like(queries),
            scale=scale,
            page_size=spec.page_size,
            needles=needles,
        )
        dense = dense_outputs(stream, self._stand_in(), plan_dense(LAYERS, spec.reserved))
        return Case(stream.with_outputs(dense), words=None)

    def _stand_in(self) -> Graph:
        return trace_for_model(stand_in_for(self.geometry.kind), self.geometry)[1]


def _length(spec: SourceSpec) -> int:
    return spec.context + spec.steps


def _normal(rng: np.random.Generator, *sizes: int) -> Floats:
    return rng.standard_normal((*sizes, HEAD_DIM), dtype=np.float32)


def _draw_keys(rng: np.random.Generator, spec: SourceSpec) -> Floats:
    topics = _normal(rng, LAYERS, -(-_length(spec) // TOPIC_TOKENS), KV_HEADS)
    shared = np.repeat(topics, TOPIC_TOKENS, axis=1)[:, : _length(spec)]
    own = _normal(rng, LAYERS, _length(spec), KV_HEADS)
    return np.float32(TOPIC_SHARE) * shared + np.float32(math.sqrt(1 - TOPIC_SHARE**2)) * own


def _plant(
    rng: np.random.Generator, spec: SourceSpec, keys: Floats, centre: Floats, scale: float
) -> tuple[PlantedNeedle, ...]:
    """Put a key along each step's query somewhere into the context."""
    logit = math.log(spec.context) + NEEDLE_LOGIT
    needles = []
    for step, layer, head in np.ndindex(spec.steps, LAYERS, KV_HEADS):
        position, direction = int(rng.integers(0, spec.context)), centre[step, layer, head, 0]
        length = logit / (scale * float(direction @ direction))
        keys[layer, position, head] = direction * np.float32(length)
        needles.append(PlantedNeedle(step, layer, head, position))
    return tuple(needles)
