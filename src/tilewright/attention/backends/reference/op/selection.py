"""Selections: the best pages of a row under the one tie rule, as bools per page."""

import math
from functools import reduce
from operator import and_, or_
from typing import Any

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame, on_arrays
from tilewright.attention.backends.reference.op.page_axis import softmax
from tilewright.attention.backends.reference.op.reduction import arg_order
from tilewright.attention.graph import Span, Types
from tilewright.attention.ops import selection
from tilewright.attention.planner import Exactly, MassRule, RowBudget, ScoreRule


def best_entries(xp: Any, scores: Array, count: int) -> Array:
    """The ``count`` largest along the last axis, the lower position among equals: bools.

    Linear in the entries: the smallest score that is in, all above it, and the first of its equals.
    """
    size = scores.shape[-1]
    if count <= 0 or count >= size:
        return xp.full(scores.shape, count > 0, dtype=xp.bool)
    limit = _largest_at(xp, scores, count)
    above, equal = scores > limit, scores == limit
    owed = count - xp.sum(xp.astype(above, xp.int32), axis=-1, keepdims=True)
    turn = xp.cumulative_sum(xp.astype(equal, xp.int32), axis=-1)
    return above | (equal & (turn <= owed))


def _largest_at(xp: Any, scores: Array, count: int) -> Array:
    """The ``count``-th largest along the last axis, which stays with size 1."""
    if hasattr(xp, "partition"):  # NumPy
        place = scores.shape[-1] - count
        return xp.partition(scores, place, axis=-1)[..., place : place + 1]
    return xp.topk(scores, count, dim=-1).values[..., -1:]


def _ranked(xp: Any, scores: Array, counts: Array) -> Array:
    """The first ``counts`` [..., 1] of each row in the order of the tie rule: bools."""
    order = arg_order(xp, scores, scores.ndim - 1)
    return xp.argsort(order, axis=-1, stable=True) < counts


def mass_entries(
    xp: Any, weights: Array, p: float, *, at_least: int, at_most: int, given: Array | float = 0.0
) -> Array:
    """The fewest entries, largest first, that together with ``given`` reach ``p`` of all weight.

    Sums are in float64: which page is the last one in must not hang on rounding of the sum.
    """
    size = weights.shape[-1]
    total = xp.sum(xp.astype(weights, xp.float64), axis=-1, keepdims=True) + given
    order = arg_order(xp, weights, weights.ndim - 1)
    sorted_weights = xp.astype(xp.take_along_axis(weights, order, axis=-1), xp.float64)
    reached = given + xp.cumulative_sum(sorted_weights, axis=-1)
    short = xp.sum(xp.astype(reached < p * total, xp.int64), axis=-1, keepdims=True)
    counts = xp.where(given >= p * total, xp.zeros_like(short), short + 1)
    counts = xp.where(total > 0, counts, xp.zeros_like(counts))
    if p >= 1.0:
        counts = xp.full_like(counts, size)
    return _ranked(xp, weights, xp.clip(counts, min(at_least, size), min(at_most, size)))


def threshold_entries(
    xp: Any, scores: Array, value: float, *, at_least: int, at_most: int
) -> Array:
    """Entries of at least ``value``, topped up or cut to the bounds by rank."""
    size = scores.shape[-1]
    counts = xp.sum(xp.astype(scores >= value, xp.int64), axis=-1, keepdims=True)
    return _ranked(xp, scores, xp.clip(counts, min(at_least, size), min(at_most, size)))


def _candidates(scores: Array, frame: Frame) -> Array:
    """Scores [heads, query heads or 1, candidates] with NaN as minus infinity, and counted."""
    xp = frame.namespace.xp
    pages = frame.span(Span.MIDDLE)
    middle = xp.astype(scores[:, pages.start : pages.stop, 0, :], xp.float32, copy=False)
    middle = xp.broadcast_to(middle, (frame.num_heads, *middle.shape[1:]))
    middle = xp.matrix_transpose(middle)
    wrong = xp.isnan(middle)
    frame.counters.nan_scores += int(xp.sum(xp.astype(wrong, xp.int64)))
    return xp.where(wrong, xp.full_like(middle, -math.inf), middle)


def _with_reserved(chosen: Array, frame: Frame) -> Array:
    """Back to [heads, pages, 1, query heads or 1], with the reserved pages."""
    xp = frame.namespace.xp
    pages = frame.span(Span.MIDDLE)
    chosen = xp.matrix_transpose(chosen)[:, :, None, :]
    heads, width = chosen.shape[0], chosen.shape[-1]
    first = xp.ones((heads, pages.start, 1, width), dtype=xp.bool)
    last = xp.ones((heads, frame.num_pages - pages.stop, 1, width), dtype=xp.bool)
    return xp.concat([first, chosen, last], axis=1)


def _top_k(frame: Frame, op: Any, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    scores = _candidates(x, frame)
    if isinstance(op, selection.TopK) and op.k is not None:
        return _with_reserved(best_entries(xp, scores, op.k), frame)
    reserved = frame.num_pages - scores.shape[-1]
    if len(set(frame.budgets)) == 1:
        return _with_reserved(_planned(xp, scores, frame.budgets[0], reserved), frame)
    rows = [
        _planned(xp, scores[head : head + 1], budget, reserved)
        for head, budget in enumerate(frame.budgets)
    ]
    return _with_reserved(xp.concat(rows, axis=0), frame)


def _planned(xp: Any, scores: Array, budget: RowBudget, reserved: int) -> Array:
    """What a budget of the plan leaves for the candidates."""
    at_least, at_most = max(budget.at_least - reserved, 0), max(budget.at_most - reserved, 0)
    match budget.rule:
        case Exactly():
            return best_entries(xp, scores, at_most)
        case ScoreRule(threshold=value):
            return threshold_entries(xp, scores, value, at_least=at_least, at_most=at_most)
        case MassRule(p=p):
            return mass_entries(xp, softmax(xp, scores, 2), p, at_least=at_least, at_most=at_most)


def _top_p(frame: Frame, op: selection.TopP, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    candidates = _candidates(x, frame)
    weights = xp.where(candidates > 0, candidates, xp.zeros_like(candidates))
    given = _reserved_weight(x, frame) if op.span == Span.ALL else 0.0
    most = weights.shape[-1] if op.max_pages is None else op.max_pages
    chosen = mass_entries(xp, weights, op.p, at_least=op.min_pages, at_most=most, given=given)
    return _with_reserved(chosen, frame)


def _reserved_weight(scores: Array, frame: Frame) -> Array:
    """Weight of the reserved pages: float64 [heads, query heads or 1, 1]."""
    xp = frame.namespace.xp
    pages = frame.span(Span.MIDDLE)
    ends = xp.concat([scores[:, : pages.start, 0, :], scores[:, pages.stop :, 0, :]], axis=1)
    ends = xp.where(ends > 0, ends, xp.zeros_like(ends))
    return xp.sum(xp.astype(xp.matrix_transpose(ends), xp.float64), axis=-1, keepdims=True)


def _threshold(frame: Frame, op: selection.Threshold, _types: Types, x: Array) -> Array:
    scores = _candidates(x, frame)
    most = scores.shape[-1] if op.max_pages is None else op.max_pages
    chosen = threshold_entries(
        frame.namespace.xp, scores, op.value, at_least=op.min_pages, at_most=most
    )
    return _with_reserved(chosen, frame)


def _selected_tokens(frame: Frame, _op: Any, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    pages = frame.span(Span.MIDDLE)
    index = xp.reshape(xp.arange(frame.num_pages), (1, -1, 1, 1))
    read = x | (index < pages.start) | (index >= pages.stop)
    tokens = xp.where(read, frame.token_counts(), xp.zeros_like(frame.token_counts()))
    return xp.astype(xp.sum(tokens, axis=1, keepdims=True), xp.int32)


SELECTIONS: EvaluatorTable = {
    selection.TopK: _top_k,
    selection.ApproxTopK: _top_k,
    selection.TopP: _top_p,
    selection.Threshold: _threshold,
    selection.Union: on_arrays(lambda _xp, _op, *operands: reduce(or_, operands)),
    selection.Intersection: on_arrays(lambda _xp, _op, *operands: reduce(and_, operands)),
    selection.Complement: on_arrays(lambda _xp, _op, x: ~x),
    selection.SelectedTokens: _selected_tokens,
}
