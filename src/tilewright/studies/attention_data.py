"""Seeded keys, values and queries with needles: keys that one decode step must not miss."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.attention.graph import FlowKind, Graph

Floats = npt.NDArray[np.float32]

NEEDLE_LOGIT = 4.0  # above the logarithm of the context: a needle outweighs all other keys
GROUP_NOISE = 0.25  # how far the queries of one group are apart


@dataclass(frozen=True, slots=True)
class Needle:
    """A key at a position of the prompt that one step's query points to, in one KV head."""

    step: int
    head: int
    position: int


@dataclass(frozen=True, slots=True)
class RequestData:
    """Tokens of one request: prompt, then one for each step. Arrays are [tokens, heads, ...]."""

    keys: Floats
    values: Floats | None  # None under MLA: a latent is both
    queries: Floats  # [tokens, heads, query heads, key_dim], the prompt's last and the steps'
    inputs: dict[str, Floats]  # what else the flow declares: [steps, heads, r, c]
    needles: tuple[Needle, ...]
    first_query: int  # position of the first of the queries


def draw_request(
    graph: Graph,
    rng: np.random.Generator,
    *,
    context: int,
    steps: int,
    kv_heads: int,
    window: int,
    scale: float,
) -> RequestData:
    """Normal keys and values; the queries of a group scatter around one direction.

    ``window`` prompt queries are drawn for flows that observe them. Every step has one needle in
    each KV head, somewhere in the prompt.
    """
    geometry = graph.geometry
    tokens = context + steps
    keys = rng.standard_normal((tokens, kv_heads, geometry.key_dim), dtype=np.float32)
    values = None
    if geometry.kind is not FlowKind.MLA:
        values = rng.standard_normal((tokens, kv_heads, geometry.value_dim), dtype=np.float32)
    window = min(window, context)
    centre = rng.standard_normal((window + steps, kv_heads, 1, geometry.key_dim), dtype=np.float32)
    noise = rng.standard_normal(
        (window + steps, kv_heads, geometry.query_heads, geometry.key_dim), dtype=np.float32
    )
    queries = centre + GROUP_NOISE * noise
    inputs = {
        name: rng.standard_normal((steps, kv_heads, *value_type.shape), dtype=np.float32)
        for name, value_type in graph.inputs
        if name != "q"
    }
    needles = []
    for step in range(steps):
        for head in range(kv_heads):
            position = int(rng.integers(0, context))
            keys[position, head] = _needle_key(centre[window + step, head, 0], context, scale)
            needles.append(Needle(step, head, position))
    return RequestData(keys, values, queries, inputs, tuple(needles), context - window)


def _needle_key(direction: Floats, context: int, scale: float) -> Floats:
    """Along the query, as long as the wanted logit asks for."""
    logit = math.log(context) + NEEDLE_LOGIT
    found: Floats = direction * np.float32(logit / (scale * float(direction @ direction)))
    return found
