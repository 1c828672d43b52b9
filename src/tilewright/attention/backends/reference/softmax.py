"""Softmax attention in parts: any split of the tokens merges to one result."""

from dataclasses import dataclass
from typing import Any

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.summation import tree_sum


@dataclass(frozen=True, slots=True)
class Partial:
    """Attention over some of the tokens, not yet divided: [heads, queries, 1 or width]."""

    largest: Array  # of the logits; minus infinity if there is no token
    total: Array  # sum of exp(logit - largest)
    weighted: Array  # sum of exp(logit - largest) * value

    def output(self, xp: Any) -> Array:
        """The attention output; 0 where there was no token at all."""
        return self.weighted / xp.where(self.total == 0, xp.ones_like(self.total), self.total)

    def log_sum_exp(self, xp: Any) -> Array:
        """Logarithm of the softmax denominator: [heads, queries]."""
        return (self.largest + xp.log(self.total))[..., 0]

    @staticmethod
    def from_output(output: Array, log_sum_exp: Array, xp: Any) -> "Partial":
        """The inverse of the two above: a result that was computed elsewhere."""
        largest = log_sum_exp[..., None]
        there = xp.astype(largest > -xp.inf, xp.float32)
        return Partial(largest, there, output * there)


def empty_partial(xp: Any, heads: int, queries: int, width: int) -> Partial:
    return Partial(
        xp.full((heads, queries, 1), -xp.inf, dtype=xp.float32),
        xp.zeros((heads, queries, 1), dtype=xp.float32),
        xp.zeros((heads, queries, width), dtype=xp.float32),
    )


def partial_of(xp: Any, logits: Array, values: Array) -> tuple[Partial, Array]:
    """Attention over one tile, and exp(logit - largest) of each token.

    Logits [heads, queries, tokens] are minus infinity where a token does not count; its value must
    be finite all the same. Values are [heads, tokens, width].
    """
    largest = xp.max(logits, axis=-1, keepdims=True)
    weights = xp.exp(logits - _finite(xp, largest))
    total = tree_sum(xp, weights, -1)
    return Partial(largest, total, xp.matmul(weights, values)), weights


def merge_partials(xp: Any, left: Partial, right: Partial) -> Partial:
    """Log-sum-exp merge. A side without tokens leaves the other as it is, bit for bit."""
    largest = xp.maximum(left.largest, right.largest)
    shift = _finite(xp, largest)
    left_scale, right_scale = xp.exp(left.largest - shift), xp.exp(right.largest - shift)
    return Partial(
        largest,
        left.total * left_scale + right.total * right_scale,
        left.weighted * left_scale + right.weighted * right_scale,
    )


def _finite(xp: Any, largest: Array) -> Array:
    """0 in place of minus infinity, so that inf - inf does not occur."""
    return xp.where(largest == -xp.inf, xp.zeros_like(largest), largest)
