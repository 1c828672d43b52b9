"""Runs requests through the reference executor."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tests.attention.flows.case import Case
from tests.attention.oracle_flows.decode import Array
from tests.attention.oracle_ops.graph import Request
from tilewright.attention.backends.reference import Session, SessionSpec
from tilewright.attention.backends.reference.op import EVALUATORS
from tilewright.attention.backends.reference.op.frame import Evaluator
from tilewright.attention.graph import FlowKind, Graph, Op
from tilewright.attention.planner import Budget, DefaultBudget, PlanSpec, Reserved, StateAdvance


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one step: pages of each KV head, output [heads, G, Dv]."""

    pages: list[list[int]]
    out: Array


def run_session(graph: Graph, case: Case, request: Request) -> list[Outcome]:
    """A session of its own: the whole prompt at once, then one token a step."""
    return run_request(open_session(graph, case, request), graph, request, "r")


def open_session(
    graph: Graph,
    case: Case,
    request: Request,
    *,
    requests: int = 1,
    budget: Budget | None = None,
    state_advance: StateAdvance = StateAdvance.VORTEX,
    evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
) -> Session:
    pages = request.keys.shape[1] // case.block_size + 2
    plan = PlanSpec(
        budget=budget or DefaultBudget(topk=request.budget),
        reserved=Reserved(request.first_reserved, request.last_reserved),
        state_advance=state_advance,
    )
    spec = SessionSpec(num_kv_heads=case.num_kv_heads, num_pages=requests * pages, plan=plan)
    return Session(graph, spec, evaluators=evaluators)


def run_request(
    session: Session, graph: Graph, request: Request, name: str, *, piece: int | None = None
) -> list[Outcome]:
    """Prompt in pieces of ``piece`` tokens (None: at once) behind what is found, then decode."""
    tokens = list(range(request.keys.shape[1]))
    prompt = request.prompt_tokens
    start = session.admit(name, tokens[:prompt]).hit_tokens
    while start < prompt:
        stop = prompt if piece is None else min(start + piece, prompt)
        step = session.begin({name: tokens[start:stop]}, prompt=True)
        step.write(0, name, *written(graph, request, slice(start, stop)))
        if stop == prompt:
            assert request.prompt_queries is not None
            step.observe(0, name, by_token(request.prompt_queries))
        step.finish()
        start = stop
    steps = range(request.queries.shape[1])
    return [decode_step(session, graph, request, name, index) for index in steps]


def decode_step(session: Session, graph: Graph, request: Request, name: str, index: int) -> Outcome:
    place = request.prompt_tokens + index
    step = session.begin({name: [place]})
    step.write(0, name, *written(graph, request, slice(place, place + 1)))
    found = step.attend(0, {name: by_token(request.queries[:, index : index + 1])})[name]
    step.finish()
    session.check_integrity()
    heads = range(request.keys.shape[0])
    pages = [[int(page) for page in found.pages(0, head)] for head in heads]
    return Outcome(pages, np.asarray(found.output[0], dtype=np.float64))


def written(graph: Graph, request: Request, tokens: slice) -> tuple[Array, ...]:
    """Keys and values of some tokens, [tokens, heads, D]; under MLA latents alone."""
    keys = by_token(request.keys[:, tokens])
    if graph.geometry.kind is FlowKind.MLA:
        return (keys,)
    return keys, by_token(request.values[:, tokens])


def by_token(values: Array) -> Array:
    """[heads, tokens, ...] -> [tokens, heads, ...] in float32."""
    return np.ascontiguousarray(np.swapaxes(values, 0, 1), dtype=np.float32)
