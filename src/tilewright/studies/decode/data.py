"""Seeded requests with needles, memory before a decode step, and what the reference makes of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.machine import StepValues, pooled, prompt_windows
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.backends.reference.namespace import load_namespace
from tilewright.attention.codegen.expression.memory import state_memory
from tilewright.attention.codegen.memory_form import packed
from tilewright.attention.graph import DType, FlowKind, Graph
from tilewright.attention.planner import PlanSpec
from tilewright.errors import AttentionError

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

    def needle_pages(self, step: int, head: int, page_size: int) -> list[int]:
        """Return the pages of the needles of one step in one KV head."""
        return [n.position // page_size for n in self.needles if (n.step, n.head) == (step, head)]


def draw_request(
    graph: Graph,
    rng: np.random.Generator,
    *,
    context: int,
    steps: int,
    kv_heads: int,
    window: int,
) -> RequestData:
    """Normal keys and values; the queries of a group scatter around one direction.

    ``window`` prompt queries are drawn for flows that observe them. Every step has one needle in
    each KV head, somewhere in the prompt.
    """
    geometry, tokens = graph.geometry, context + steps
    scale = geometry.key_dim**-0.5
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


Array = np.ndarray[Any, Any]
Int64s = npt.NDArray[np.int64]
PREFILL_TOKENS = 8192  # written at a time


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """What the step starts from, and what the reference makes of it; rows as on the machine."""

    values: StepValues
    num_tokens: tuple[int, ...]  # of each request, the new one included
    output: Array  # float32 [rows, query heads, value channels]
    pages: tuple[Int64s, ...]  # that each row reads, ascending
    kept: Mapping[str, Sequence[Array]]  # state behind the step, as in its values
    scores: tuple[Array | None, ...]  # float32 [pages] of each row; None: not one for each page


def draw_requests(
    graph: Graph, contexts: Sequence[int], *, kv_heads: int, seed: int
) -> tuple[RequestData, ...]:
    """Random tokens with a needle in every KV head; ``contexts`` count the new token."""
    if min(contexts) < 2:
        found = f"contexts of {', '.join(map(str, contexts))} tokens"
        raise AttentionError("values", found, "a prompt and the new token", "take 2 or more")
    return tuple(
        draw_request(
            graph,
            np.random.default_rng((seed, index)),
            context=count - 1,
            steps=1,
            kv_heads=kv_heads,
            window=max(prompt_windows(graph), default=1),
        )
        for index, count in enumerate(contexts)
    )


def reference_step(graph: Graph, requests: Sequence[RequestData], plan: PlanSpec) -> ReferenceStep:
    """Prefill a session, look at its memory, then decode the last token of every request.

    Queries are rounded to the type in which the machine has them.
    """
    named = {f"request{index}": data for index, data in enumerate(requests)}
    kv_heads, size = requests[0].keys.shape[1], graph.geometry.page_size
    pages = {name: -(-len(data.keys) // size) for name, data in named.items()}
    sizes = SessionSpec(num_kv_heads=kv_heads, num_pages=sum(pages.values()), plan=plan)
    session = Session(graph, sizes)
    first = 0
    for name, data in named.items():
        prefill(session, name, data, range(first, first + len(data.keys) - 1))
        first += len(data.keys)
    step = session.begin({name: [0] for name in named})
    fields = {
        field: [
            packed(np.array(session.store.pool(0, field)[:, _blocks(session, name)]), item.type)
            for name in named
        ]
        for field, item in pooled(graph).items()
    }
    kept = _kept(graph, session, named)
    inputs = {name: _inputs(graph, data) for name, data in named.items()}
    for name, data in named.items():
        step.write(0, name, data.keys[-1:], None if data.values is None else data.values[-1:])
    given = {name: {key: value[None] for key, value in own.items()} for name, own in inputs.items()}
    scores = step.scores(0, given)
    found = step.attend(0, given)
    step.finish()
    return ReferenceStep(
        StepValues(
            fields=fields,
            new_tokens=_new_tokens(graph, requests),
            inputs={
                key: _stored(np.stack([own[key] for own in inputs.values()]), kind.dtype)
                for key, kind in graph.inputs
            },
            kept=kept,
        ),
        tuple(len(data.keys) for data in requests),
        np.concatenate([np.asarray(found[name].output)[0] for name in named]),
        tuple(found[name].pages(0, head) for name in named for head in range(kv_heads)),
        _states(graph, session, pages),
        tuple(_row_scores(scores[name], head) for name in named for head in range(kv_heads)),
    )


def _row_scores(scores: Any, head: int) -> Array | None:
    """Of one row, if its query heads choose together."""
    if scores is None or scores.shape[-1] > 1:
        return None
    return np.asarray(scores[min(head, len(scores) - 1), :, 0, 0], dtype=np.float32)


def _kept(
    graph: Graph, session: Session, requests: Mapping[str, RequestData]
) -> dict[str, list[Array]]:
    """What requests have kept behind their prompts."""
    size = graph.geometry.page_size
    pages = {name: -(-(len(data.keys) - 1) // size) for name, data in requests.items()}
    kept = _states(graph, session, pages)
    for window in prompt_windows(graph):
        kept[f"prompt_mass_{window}_state"] = [
            _prompt_mass(graph, data, window) for data in requests.values()
        ]
    return kept


def _states(graph: Graph, session: Session, pages: Mapping[str, int]) -> dict[str, list[Array]]:
    """By name, then request: [KV heads, pages, r, c] of so many pages."""
    return {
        state_memory(state.name, "state"): [
            packed(
                _stored(
                    np.asarray(session.state(name, 0, state.name))[:, :count], state.type.dtype
                ),
                state.type,
            )
            for name, count in pages.items()
        ]
        for state in graph.states
    }


def _prompt_mass(graph: Graph, data: RequestData, window: int) -> Array:
    """[heads, pages, 1, query heads]: what the last queries of the prompt gave each page."""
    size, (count, heads, width) = graph.geometry.page_size, data.keys.shape
    num_prompt, num_queries = count - 1, data.queries.shape[2]
    num_pages = -(-num_prompt // size)
    mass = np.zeros((heads, num_pages * size, num_queries))
    for token in range(max(num_prompt - window, 0), num_prompt):
        query = data.queries[token - data.first_query].astype(np.float64)
        keys = data.keys[: token + 1].astype(np.float64)
        logits = np.einsum("hqd,thd->htq", query, keys) * width**-0.5
        mass[:, : token + 1] += softmax(logits, axis=1)
    by_page = mass.reshape(heads, num_pages, size, num_queries).sum(axis=2)
    found: Array = by_page[:, :, None].astype(np.float32)
    return found


def prefill(session: Session, name: str, data: RequestData, tokens: range) -> None:
    """``tokens`` are numbers that no two requests share, so that no prefix is found."""
    session.admit(name, tokens)
    for start in range(0, len(tokens), PREFILL_TOKENS):
        part = slice(start, min(start + PREFILL_TOKENS, len(tokens)))
        step = session.begin({name: tokens[part]}, prompt=True)
        step.write(0, name, data.keys[part], None if data.values is None else data.values[part])
        if part.stop == len(tokens):
            step.observe(0, name, data.queries[: len(tokens) - data.first_query])
        step.finish()


def softmax(logits: npt.NDArray[np.float64], axis: int = -1) -> npt.NDArray[np.float64]:
    """Return weights that add up to 1 along an axis."""
    weights = np.exp(logits - logits.max(axis=axis, keepdims=True))
    found: npt.NDArray[np.float64] = weights / weights.sum(axis=axis, keepdims=True)
    return found


def _blocks(session: Session, name: str) -> Int64s:
    return np.asarray(session.pager.table(name).block_ids(), dtype=np.int64)


def _inputs(graph: Graph, data: RequestData) -> dict[str, Array]:
    """Of the new token, [heads, r, c], rounded as stored."""
    given = {"q": data.queries[-1], **{name: value[0] for name, value in data.inputs.items()}}
    return {
        name: _stored(given[name], kind.dtype).astype(np.float32) for name, kind in graph.inputs
    }


def _new_tokens(graph: Graph, requests: Sequence[RequestData]) -> dict[str, Array]:
    dtype = graph.geometry.kv_dtype
    keys = _stored(np.stack([data.keys[-1] for data in requests]), dtype)
    if graph.geometry.kind is FlowKind.MLA:
        return {"latent": keys}
    values = [data.values[-1] for data in requests if data.values is not None]
    return {"k": keys, "v": _stored(np.stack(values), dtype)}


def _stored(values: Array, dtype: DType) -> Array:
    """Round as the reference does: a float beyond the largest of a type of one byte becomes it."""
    found: Array = load_namespace("numpy").stored(values, dtype)
    return found
