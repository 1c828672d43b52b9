"""Selections: made from scores, combined, forced, reused."""

import math
from collections.abc import Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar

from tilewright.attention.abs.argument import BranchSpec, OutputSlot
from tilewright.attention.abs.context_base import ContextBase
from tilewright.attention.abs.op import Bases, split_context, trace_of, vOp
from tilewright.attention.abs.value import Value, lower
from tilewright.attention.graph import (
    FORMAT,
    DType,
    Leading,
    Op,
    Span,
    StateVar,
    ValueType,
)
from tilewright.attention.ops import binary, choose, compare, position, selection
from tilewright.attention.ops.leaf import StateRead

# ruff: noqa: ARG002 - calls have the signature that users know

_SCORE_ALIASES = MappingProxyType({"score": "scores", "x": "scores"})  # both are Vortex's


def _end(op: vOp, o: Any, branches: Sequence[BranchSpec]) -> OutputSlot:
    """End the flow in a call of ``op``."""
    if not isinstance(o, OutputSlot):
        raise op._error(f"an o of type {type(o).__name__}", "the o of the method", "pass o")
    o.combine(branches)
    return o


class Selector(vOp):
    """With ``o`` it ends the flow, without it returns the selection."""

    operand_aliases = _SCORE_ALIASES

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        args, ctx = split_context(args, ctx)
        slot = kwargs.pop("o", None)
        if args and isinstance(args[-1], OutputSlot):
            args, slot = args[:-1], args[-1]
        chosen = super().profile(*args, ctx=ctx, **kwargs)
        return chosen if slot is None else _end(self, slot, [BranchSpec(chosen)])


class topK(Selector):
    """The pages with the largest scores, as many as the plan says. ``topK()(score, o, ctx=ctx)``
    ends the flow; without ``o`` it returns the selection.
    """

    definition = selection.TopK

    def build(self, *, per_head: bool = False) -> Op | None:
        return super().build(None, per_head)


class approxTopK(Selector):
    """`topK`: exact on every backend, so a recall of at least 1 - ``tolerate_ratio``."""

    definition = selection.ApproxTopK

    def build(self, tolerate_ratio: Any = 0.0, *, per_head: bool = False) -> Op | None:
        return super().build(tolerate_ratio, per_head)


class topP(Selector):
    """The fewest pages that hold ``p`` of the weight; see the op TopP."""

    definition = selection.TopP

    def build(
        self,
        p: float,
        max_blocks: int | None = None,
        min_blocks: int = 0,
        *,
        span: str = Span.MIDDLE,
        per_head: bool = False,
    ) -> Op | None:
        return super().build(p, min_blocks, max_blocks, span, per_head)


class threshold(Selector):
    """Pages whose score is at least ``t``; see the op Threshold."""

    definition = selection.Threshold

    def build(
        self,
        t: float,
        max_blocks: int | None = None,
        min_blocks: int = 0,
        *,
        per_head: bool = False,
    ) -> Op | None:
        return super().build(t, min_blocks, max_blocks, per_head)


class _Measured(vOp):
    """``TopK(k)(score)``: the selection of the k best middle pages, and its length in tokens."""

    definition = selection.TopK
    operand_aliases = _SCORE_ALIASES

    def build(self, k: int, *, per_head: bool = False) -> Op | None:
        if k is None:
            raise self._error("k=None", "a whole number of at least 1", "use topK for the plan's")
        return super().build(k, per_head)

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        chosen: Value = super().profile(*args, ctx=ctx, **kwargs)
        return chosen, lower(selection.SelectedTokens(), chosen, trace=chosen.trace)


class _Combination(Selector):
    """Streams are selections, or the pairs that `TopK` returns; any number of them."""

    operand_aliases = MappingProxyType({})

    def profile(self, *args: Any, ctx: ContextBase | None = None, **kwargs: Any) -> Any:
        streams = [item[0] if isinstance(item, tuple | list) else item for item in args]
        return super().profile(*streams, ctx=ctx, **kwargs)


class _AnyStream(_Combination):
    """Pages of any stream. ``Union()(a, b, ..., o, ctx=ctx)`` ends the flow."""

    definition = selection.Union


class _EveryStream(_Combination):
    """Pages that all streams have."""

    definition = selection.Intersection


SELECTION_BASES: Bases = MappingProxyType(
    {
        selection.TopK: _Measured,
        selection.Union: _AnyStream,
        selection.Intersection: _EveryStream,
    }
)


class _Forced(vOp):
    """A selection by position alone."""

    def _check(self, *numbers: int) -> None:
        if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in numbers):
            raise self._error(f"{numbers}", "whole numbers of pages", "count pages from 0")


class _FromEnd(_Forced):
    """Pages whose distance from an end of the row is less than ``n``."""

    distance: ClassVar[Op]

    def build(self, n: int) -> None:
        self._check(n)

    def profile(self, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        return _compare(self, self.distance, compare.Less(), self.n, ctx)


class sink(_FromEnd):
    """The first ``n`` pages."""

    distance = position.PageIndex()


class recent(_FromEnd):
    """The last ``n`` pages, an unfinished one included."""

    distance = position.PageAge()


class pages(_Forced):
    """Pages by their logical positions."""

    def build(self, *numbers: int) -> None:
        self._check(*numbers)

    def profile(self, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        if not self.numbers:
            raise self._error("no page", "at least one", "name a page")
        chosen = [
            _compare(self, position.PageIndex(), compare.Equal(), number, ctx)
            for number in self.numbers
        ]
        union = selection.Union()
        return chosen[0] if len(chosen) == 1 else lower(union, *chosen, trace=chosen[0].trace)


class every(vOp):
    """Takes a selection anew at every n-th step, and keeps it in between.

    Pages that came since are not part of a kept selection; the reserved last ones always are.
    """

    def build(self, n: int) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise self._error(f"n={n!r}", "a whole number of steps, at least 1", "change n")

    def profile(self, chosen: Any, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        trace = trace_of("every", (chosen,), ctx)
        shape = trace.node_of(choose.Select(), chosen).type.shape
        name = f"selection.{len(trace.own_states)}"
        kept_type = ValueType(FORMAT.PAGED, Leading.PAGES, shape, DType.BOOL)
        trace.declare_state(name, StateVar(name, kept_type))
        step = lower(position.StepIndex(), trace=trace)
        phase = lower(binary.Remainder(), step, self.n, trace=trace)
        fresh = lower(compare.Equal(), phase, 0, trace=trace)
        kept = lower(StateRead(name), trace=trace)
        result = lower(choose.Select(), fresh, chosen, kept, trace=trace)
        trace.write_state(name, result.node)
        return result


def _compare(op: vOp, leaf: Op, relation: Op, number: int, ctx: ContextBase | None) -> Value:
    trace = trace_of(type(op).__name__, (), ctx)
    return lower(relation, lower(leaf, trace=trace), number, trace=trace)


class Attend(vOp):
    """``Attend()(selection, o)``: attention over the selected pages."""

    def profile(self, selection: Any, o: Any, ctx: Any = None) -> OutputSlot:  # type: ignore[override]
        return _end(self, o, [BranchSpec(selection)])


class ZoneEstimate(vOp):
    """``ZoneEstimate()(selection, logits, values, o)``: pages that are not selected enter by their
    estimates; see BranchSpec for the shapes.
    """

    def profile(  # type: ignore[override]
        self, selection: Any, logits: Any, values: Any, o: Any, ctx: Any = None
    ) -> OutputSlot:
        return _end(self, o, [BranchSpec(selection, logits=logits, values=values)])


class AttendBranches(vOp):
    """``AttendBranches()([BranchSpec(...), ...], o)``: a sum of attentions, each with its gate."""

    def profile(  # type: ignore[override]
        self, branches: Sequence[BranchSpec], o: Any, ctx: Any = None
    ) -> OutputSlot:
        return _end(self, o, branches)


class GTGroupScore(vOp):
    """``GTGroupScore()(q, cache["k"])`` -> [S, 1, 1]: the largest group weight in each page.

    The weight of a token is the sum over the query heads of the group of its softmax weight over
    all tokens of the row. ``scale`` of the logits is 1/sqrt(width of a key) by default.
    """

    def build(self, *, scale: float | None = None) -> None:
        if scale is not None and (isinstance(scale, bool) or not isinstance(scale, Real)):
            raise self._error(f"scale={scale!r}", "a number", "change scale")

    def profile(self, q: Any, k: Any, ctx: ContextBase | None = None) -> Value:  # type: ignore[override]
        trace = trace_of("GTGroupScore", (q, k), ctx)
        for name, operand in (("q", q), ("k", k)):
            if not isinstance(operand, Value):
                found = f"operand {name} of type {type(operand).__name__}"
                raise trace.located(self._error(found, "a value of the flow", 'pass q, cache["k"]'))
        scale = 1.0 / math.sqrt(q.shape[2]) if self.scale is None else float(self.scale)
        logits = (k @ q.T) * scale
        weights = (logits - logits.amax(1).amax(0, span=Span.ALL)).exp()
        total = weights.sum(1).sum(0, span=Span.ALL)
        score: Value = (weights / total).sum(2).amax(1)
        return score


class GTTopK(topK):
    """`topK` of ground-truth scores: ``GTTopK()(score, o, ctx=ctx)`` ends the flow."""
