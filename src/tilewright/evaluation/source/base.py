"""What flows are compared on: a source draws cases, each from its own seed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.attention.graph import FlowKind, Geometry
from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.errors import UsageError
from tilewright.evaluation.stream import StepRecorder, Stream
from tilewright.evaluation.words import Target, Words, decode_tokens
from tilewright.models import ModelShape, ModelWeights, Prompt
from tilewright.models.dense import StepWrapper
from tilewright.models.forward import AttentionStep
from tilewright.records.attention.compare import SourceFigures
from tilewright.serving.decode import geometry_of
from tilewright.serving.model_flow import plan_dense, stand_in_for, trace_for_model


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """Sizes of the cases that a source draws."""

    context: int  # tokens that are taken in, densely, before anything is asked
    steps: int  # decoded tokens of a case, at most
    cases: int
    seed: int = 0
    page_size: int = 16
    reserved: Reserved = field(default_factory=Reserved)
    state_advance: StateAdvance = StateAdvance.VORTEX
    kind: FlowKind = FlowKind.GQA  # of drawn keys; a model has its own


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One sequence. Without a model there are no words."""

    stream: Stream
    words: Words | None


class Source(ABC):
    """Cases of equal sizes. The same spec and index draw the same case."""

    geometry: Geometry  # what flows are traced for
    num_layers: int
    num_kv_heads: int

    @property
    @abstractmethod
    def figures(self) -> SourceFigures:
        """What a comparison says of the source."""

    @abstractmethod
    def draw(self, index: int, *, kept_queries: int) -> Case:
        """``kept_queries`` of the context's last tokens can be observed by flows."""


class ModelSource(Source):
    """What sources with a model have in common."""

    def __init__(self, name: str, spec: SourceSpec, shape: ModelShape) -> None:
        """Refuse a case that is longer than what the model was made for."""
        self._spec = spec
        self.geometry = geometry_of(shape, spec.page_size)
        self.num_layers, self.num_kv_heads = shape.layers, shape.kv_heads
        if spec.context + spec.steps > shape.context:
            found = f"{spec.context} tokens of context and {spec.steps} to decode"
            expected = f"{shape.context} at most in all"
            raise UsageError(f"source {name}", found, expected, "lower --context")


def generator_of(spec: SourceSpec, index: int) -> np.random.Generator:
    """Of one case: other cases do not move it."""
    return np.random.default_rng([spec.seed, index])


def record_case(
    spec: SourceSpec,
    weights: ModelWeights,
    prompt: Prompt,
    tokens: Sequence[int],
    targets: Sequence[Target],
    *,
    needles: Sequence[range] = (),
    new_wrapper: Callable[[], StepWrapper] | None = None,
) -> Case:
    """Decode the tokens once with every page, as a flow of a budget for all of them would."""
    shape, recorder = weights.shape, StepRecorder()
    wrapper = None if new_wrapper is None else new_wrapper()

    def around(step: AttentionStep) -> AttentionStep:
        recorded = recorder.around(step)
        return recorded if wrapper is None else wrapper(recorded)

    geometry = geometry_of(shape, spec.page_size)
    graph = trace_for_model(stand_in_for(geometry.kind), geometry)[1]
    plan = plan_dense(shape.layers, spec.reserved)
    dense = decode_tokens(weights, graph, plan, prompt, tokens, around)
    queries, keys, values, outputs = recorder.arrays(shape.layers)
    stream = Stream(
        context_tokens=prompt.tokens,
        context=prompt.attention,
        tokens=tuple(tokens),
        queries=queries,
        keys=keys,
        values=values,
        outputs=outputs,
        scale=shape.attention_scale,
        page_size=spec.page_size,
    )
    words = Words(
        weights, prompt, tuple(tokens), tuple(targets), dense, tuple(needles), new_wrapper
    )
    return Case(stream, words)
