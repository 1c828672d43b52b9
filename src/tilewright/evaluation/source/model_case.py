"""A case from a model: the context by dense attention, then each token, recorded."""

from collections.abc import Callable, Sequence

from tilewright.attention.planner import Reserved
from tilewright.evaluation.source.base import Case
from tilewright.evaluation.stream import StepRecorder, Stream
from tilewright.evaluation.words import Target, Words, log_probabilities
from tilewright.models import ModelWeights, Prompt
from tilewright.models.dense import StepWrapper
from tilewright.models.forward import AttentionStep
from tilewright.serving.decode import FlowDecoder, geometry_of
from tilewright.serving.model_flow import plan_dense, stand_in_for, trace_for_model


def record_case(
    weights: ModelWeights,
    prompt: Prompt,
    tokens: Sequence[int],
    targets: Sequence[Target],
    *,
    needles: Sequence[range] = (),
    new_wrapper: Callable[[], StepWrapper] | None = None,
    page_size: int,
    reserved: Reserved,
) -> Case:
    """Decode the tokens once with every page, as a flow of a budget for all of them would."""
    shape, recorder = weights.shape, StepRecorder()
    wrapper = None if new_wrapper is None else new_wrapper()

    def around(step: AttentionStep) -> AttentionStep:
        recorded = recorder.around(step)
        return recorded if wrapper is None else wrapper(recorded)

    geometry = geometry_of(shape, page_size)
    graph = trace_for_model(stand_in_for(geometry.kind), geometry)[1]
    decoder = FlowDecoder(
        weights,
        graph,
        plan_dense(shape.layers, reserved),
        prompt,
        capacity=len(prompt.tokens) + len(tokens),
        around=around,
    )
    dense = log_probabilities([decoder.step(token) for token in tokens])
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
        page_size=page_size,
    )
    words = Words(
        weights, prompt, tuple(tokens), tuple(targets), dense, tuple(needles), new_wrapper
    )
    return Case(stream, words)
