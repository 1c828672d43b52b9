"""The ends of every comparison: pages by the mass that they truly have, and by chance."""

import math

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA
from tilewright.attention.graph import Span
from tilewright.attention.indexer import HeadIndex, LayerIndex, PageIndex, StepIndex

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class TrueMass(Scored):
    """score(P) = mean_g of the true mass of P; the scale is 1 / sqrt(width) unless given.

    p_g(i) = softmax over all cached tokens of scale q_g . k_i; the mass of P is the sum of p_g(i)
    over its tokens. It reads every key, so it shows what a rule could reach and saves nothing.
    """

    paper = "none: the upper end of every comparison"
    group = "mean of masses"
    scale: float | None = None

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else self.scale
        logits = (cache[self.keys] @ q.T) * scale
        weight = (logits - logits.max(1).max(0, span=Span.ALL)).exp().sum(1)
        return (weight / weight.sum(0, span=Span.ALL)).mean(2)


@register("oracle")
class Oracle(TrueMass, ScoredFlow):
    """score(P) = mean_g of the true mass of P."""


@register("oracle_mla")
class OracleMLA(TrueMass, ScoredFlowMLA):
    """score(P) = mean_h of the true mass of P.

    The absorbed query makes the dot product the whole logit; its scale belongs to the model:
    1 / sqrt(width of the unabsorbed head), 1 / sqrt(latent width) by default.
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale


class Drawn(Scored):
    """A flow whose scores are drawn, anew at every step.

    score(P) = 24 bits of a hash of seed, layer, KV head, step and position. Nothing is drawn from a
    generator, so a run repeats, and a page's score does not depend on other pages.
    """

    paper = "none: the lower end of every comparison"
    group = "none: the query does not matter"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self.numbers = (LayerIndex(), HeadIndex(), StepIndex(), PageIndex())

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        layer, head, step, page = (number(ctx=ctx) for number in self.numbers)
        stirred = _mixed(layer * 0 + _int32(self.seed)) + layer
        for number in (head, step, page):
            stirred = _mixed(stirred) + number
        return _mixed(stirred) & 0xFFFFFF


@register("random")
class Random(Drawn, ScoredFlow):
    """score(P) = hash(seed, layer, KV head, step, position of P)."""


@register("random_mla")
class RandomMLA(Drawn, ScoredFlowMLA):
    """score(P) = hash(seed, layer, step, position of P)."""


def _mixed(number: Value) -> Value:
    """A 32-bit finalizer: each bit of the input changes about half of the bits of the output."""
    number = number ^ _shifted(number, 16)
    number = number * _int32(0x85EBCA6B)
    number = number ^ _shifted(number, 13)
    number = number * _int32(0xC2B2AE35)
    return number ^ _shifted(number, 16)


def _shifted(number: Value, count: int) -> Value:
    """To the right, with zeros coming in instead of the sign."""
    return (number >> count) & ((1 << (32 - count)) - 1)


def _int32(number: int) -> int:
    """The 32 bits of ``number`` read with a sign."""
    return (number + 2**31) % 2**32 - 2**31
