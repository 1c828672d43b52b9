"""Saved state of a row over decode steps in plain NumPy, by the rule of Vortex.

A row has n blocks, an unfinished last one counted, and may read
s = min(n, max(topk + first + last, floor(n ratio))) of them. While n <= s nothing of its flow runs.
Else the flow and its Saves cover blocks 0 ... n - last - 1, and functions over blocks cover the
middle, blocks first ... n - last - 1. Nothing here knows graphs, plans or backends.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
DECAY = 0.5
CONV_WEIGHTS = (1.0, 0.5, -0.25)  # of the block itself, the one before, and the one before that


@dataclass(frozen=True, slots=True)
class StateCase:
    """Budget, reserved blocks and the lengths of prompts; the same for every flow shape."""

    name: str
    first: int
    last: int
    topk: int
    ratio: float
    prompts: tuple[int, ...]  # tokens of each request before its first step
    block_size: int = 4
    steps: int = 12

    def num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def num_read(self, num_blocks: int) -> int:
        """Return the blocks that a row of so many may read."""
        policy = max(self.topk + self.first + self.last, math.floor(num_blocks * self.ratio))
        return min(num_blocks, policy)


@dataclass(frozen=True, slots=True)
class StateRow:
    """Keys [tokens, D] of one KV head, prompt and decoded ones, and queries [steps, G, D]."""

    keys: Doubles
    queries: Doubles


def _softmax(middle: Doubles) -> Doubles:
    weights = np.exp(middle - middle.max())
    out: Doubles = weights / weights.sum()
    return out


def _normalized(middle: Doubles) -> Doubles:
    out: Doubles = middle / max(float(np.sqrt((middle**2).sum())), 1e-12)
    return out


def _convolved(middle: Doubles) -> Doubles:
    out = np.zeros_like(middle)
    for distance, weight in enumerate(CONV_WEIGHTS):
        for block in range(distance, len(middle)):
            out[block] += weight * middle[block - distance]
    return out


def _in_the_middle(function: Callable[[Doubles], Doubles]) -> "Shape":
    """Apply a function to the middle; other blocks pass through."""

    def shape(scores: Doubles, middle: slice) -> Doubles:
        out = scores.copy()
        out[middle] = function(scores[middle])
        return out

    return shape


def _above_the_mean(scores: Doubles, middle: slice) -> Doubles:
    """Subtract the mean of the middle, from every block."""
    out: Doubles = scores - scores[middle].mean()
    return out


Shape = Callable[[Doubles, slice], Doubles]
"""From scores of all covered blocks and the middle of the row to what is added to the state."""

SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "scores": lambda scores, _middle: scores,
        "softmax": _in_the_middle(_softmax),
        "normalize": _in_the_middle(_normalized),
        "conv1d": _in_the_middle(_convolved),
        "mean": _above_the_mean,
    }
)


def expected_states(case: StateCase, row: StateRow, shape: Shape) -> Sequence[Doubles]:
    """Return the state of every block behind each step: ``state <- DECAY state + shape(scores)``.

    A block begins with 0, and its score is the product of the mean query and its mean key.
    """
    prompt = len(row.keys) - len(row.queries)
    states: list[Doubles] = []
    state = np.zeros(0)
    for step, query in enumerate(row.queries):
        num_tokens = prompt + step + 1
        num_blocks = case.num_blocks(num_tokens)
        state = np.concatenate([state, np.zeros(num_blocks - len(state))])
        if num_blocks > case.num_read(num_blocks):
            stop = num_blocks - case.last
            size = case.block_size
            means = [
                row.keys[block * size : (block + 1) * size].mean(axis=0) for block in range(stop)
            ]
            scores = np.stack(means) @ query.mean(axis=0)
            state[:stop] = DECAY * state[:stop] + shape(scores, slice(case.first, stop))
        states.append(state.copy())
    return states
