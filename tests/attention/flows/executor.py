"""Runs a request through the reference executor."""

from dataclasses import dataclass

import numpy as np

from tests.attention.flows.case import Case
from tests.attention.oracle_flows.decode import Array
from tests.attention.oracle_ops.graph import Request
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.graph import FlowKind, Graph
from tilewright.attention.planner import DefaultBudget, PlanSpec, Reserved


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one step: pages of each KV head, output [heads, G, Dv]."""

    pages: list[list[int]]
    out: Array


def run_session(graph: Graph, case: Case, request: Request) -> list[Outcome]:
    """The whole prompt at once, then one token a step."""
    session = Session(graph, session_spec(case, request))
    tokens = list(range(request.keys.shape[1]))
    prompt = request.prompt_tokens
    session.admit("r", tokens[:prompt])
    step = session.begin({"r": tokens[:prompt]}, prompt=True)
    step.write(0, "r", *pieces(graph, request, slice(0, prompt)))
    assert request.prompt_queries is not None
    step.observe(0, "r", by_token(request.prompt_queries))
    step.finish()
    outcomes = []
    for index in range(request.queries.shape[1]):
        place = prompt + index
        step = session.begin({"r": [tokens[place]]})
        step.write(0, "r", *pieces(graph, request, slice(place, place + 1)))
        found = step.attend(0, {"r": by_token(request.queries[:, index : index + 1])})["r"]
        step.finish()
        session.check_integrity()
        pages = [found.pages(0, head).tolist() for head in range(case.num_kv_heads)]
        outcomes.append(Outcome(pages, np.asarray(found.output[0], dtype=np.float64)))
    return outcomes


def session_spec(case: Case, request: Request) -> SessionSpec:
    return SessionSpec(
        num_kv_heads=case.num_kv_heads,
        num_pages=request.keys.shape[1] // case.block_size + 2,
        plan=PlanSpec(
            budget=DefaultBudget(topk=request.budget),
            reserved=Reserved(request.first_reserved, request.last_reserved),
        ),
    )


def pieces(graph: Graph, request: Request, tokens: slice) -> tuple[Array, ...]:
    """Keys and values of some tokens, [tokens, heads, D]; under MLA latents alone."""
    keys = by_token(request.keys[:, tokens])
    if graph.geometry.kind is FlowKind.MLA:
        return (keys,)
    return keys, by_token(request.values[:, tokens])


def by_token(values: Array) -> Array:
    """[heads, tokens, ...] -> [tokens, heads, ...] in float32."""
    return np.ascontiguousarray(np.swapaxes(values, 0, 1), dtype=np.float32)
