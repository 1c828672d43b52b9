"""What a model says under a flow, beside what it says with dense attention."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.attention.graph import Graph
from tilewright.attention.planner import PlanSpec
from tilewright.evaluation.stream import Doubles
from tilewright.models import ModelWeights, Prompt
from tilewright.models.dense import StepWrapper
from tilewright.serving.decode import FlowDecoder


@dataclass(frozen=True, slots=True)
class Target:
    """The token that is right behind the token of a step."""

    step: int
    token: int


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A prompt, tokens that are given one by one behind it, and which answers are right.

    ``new_wrapper`` gives what goes around the attention of one more decoder (see `FlowDecoder`).
    """

    weights: ModelWeights
    prompt: Prompt
    tokens: tuple[int, ...]
    targets: tuple[Target, ...]
    dense: Doubles  # log-probabilities [steps, vocab] of dense attention
    needles: tuple[range, ...] = ()  # targets of each answer that stands in the context
    new_wrapper: Callable[[], StepWrapper] | None = None


@dataclass(frozen=True, slots=True)
class WordSamples:
    kl: tuple[float, ...]  # over steps: of dense probabilities against those under the flow
    nll: tuple[float, ...]  # over targets
    dense_nll: tuple[float, ...]
    needle_hits: int  # answers all of whose tokens are the likeliest
    dense_needle_hits: int


def say_words(words: Words, graph: Graph, plan: PlanSpec) -> WordSamples:
    """Give the tokens to a decoder under the flow: teacher-forced, so flows stay comparable."""
    found = decode_words(words, graph, plan)
    return WordSamples(
        kl=tuple(map(_divergence, words.dense, found)),
        nll=_likelihoods(words, found),
        dense_nll=_likelihoods(words, words.dense),
        needle_hits=_hits(words, found),
        dense_needle_hits=_hits(words, words.dense),
    )


def decode_words(words: Words, graph: Graph, plan: PlanSpec) -> Doubles:
    around = None if words.new_wrapper is None else words.new_wrapper()
    return decode_tokens(words.weights, graph, plan, words.prompt, words.tokens, around)


def decode_tokens(
    weights: ModelWeights,
    graph: Graph,
    plan: PlanSpec,
    prompt: Prompt,
    tokens: Sequence[int],
    around: StepWrapper | None,
) -> Doubles:
    """Return log-probabilities [tokens, vocab] of a decoder under the flow, given the tokens."""
    capacity = len(prompt.tokens) + len(tokens)
    decoder = FlowDecoder(weights, graph, plan, prompt, capacity=capacity, around=around)
    values = np.asarray([decoder.step(token) for token in tokens], dtype=np.float64)
    values = values - values.max(axis=-1, keepdims=True)
    found: Doubles = values - np.log(np.exp(values).sum(axis=-1, keepdims=True))
    return found


def _divergence(dense: Doubles, found: Doubles) -> float:
    return float((np.exp(dense) * (dense - found)).sum())


def _likelihoods(words: Words, logs: Doubles) -> tuple[float, ...]:
    return tuple(float(-logs[target.step, target.token]) for target in words.targets)


def _hits(words: Words, logs: Doubles) -> int:
    right = [bool(logs[one.step].argmax() == one.token) for one in words.targets]
    return sum(all(right[place] for place in answer) for answer in words.needles)
