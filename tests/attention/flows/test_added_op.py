"""One op more than the table has: what docs/architecture.md says about adding an op, done."""

from typing import Any

import numpy as np

from tests.attention.flow.making import flow_of, score
from tests.attention.flows.case import Case, request_of
from tests.attention.flows.executor import Outcome, open_session, run_request
from tests.attention.graph.parse import parse_graph
from tilewright.attention.backends.reference.op import EVALUATORS, build_evaluators
from tilewright.attention.backends.reference.op.frame import on_arrays
from tilewright.attention.cache.ops import build_ops as build_cache_ops
from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.graph import Graph, Side
from tilewright.attention.graph.text import graph_text
from tilewright.attention.indexer.ops import build_ops as build_indexer_ops
from tilewright.attention.ops import OPS
from tilewright.attention.ops.table import build_table
from tilewright.attention.ops.unary import Unary


class Cubed(Unary):
    """``scale * x ** 3``."""

    scale: float = 1.0


TABLE = build_table([*OPS.values(), Cubed])
EVALUATORS_AND_CUBED = build_evaluators(
    dict(EVALUATORS), {Cubed: on_arrays(lambda _xp, op, x: x * x * x * op.scale)}
)
CacheCubed: Any = build_cache_ops(__name__, TABLE)["Cubed"]
IndexerCubed: Any = build_indexer_ops(__name__, TABLE)["Cubed"]


def by_op() -> FlowBase:
    of_keys, of_score = CacheCubed(), IndexerCubed(scale=2)

    def complete(cache: Any, loc: Any, ctx: Any) -> None:
        of_keys(cache["k"].mean(1), cache["centroids"], loc=loc, ctx=ctx)

    def choose(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        o.select(of_score(score(q, cache), ctx=ctx).topk())

    return flow_of(choose, complete)


def by_hand() -> FlowBase:
    def complete(cache: Any, _loc: Any, _ctx: Any) -> None:
        mean = cache["k"].mean(1)
        cache["centroids"] = mean * mean * mean

    def choose(q: Any, o: Any, cache: Any, _ctx: Any) -> None:
        found = score(q, cache)
        o.select((found * found * found * 2.0).topk())

    return flow_of(choose, complete)


def run(flow: FlowBase) -> tuple[Graph, list[Outcome]]:
    case = Case("added", lambda: flow, lambda _decodes, _prompt: [])
    graph, request = trace_flow(flow, case.geometry), request_of(case, 7)
    session = open_session(graph, case, request, evaluators=EVALUATORS_AND_CUBED)
    return graph, run_request(session, graph, request, "r")


def test_an_op_that_is_added_to_the_table_runs_in_a_flow() -> None:
    graph, found = run(by_op())
    _, wanted = run(by_hand())
    assert all("Cubed" in [node.op.name for node in graph.nodes(side)] for side in Side)
    for one, other in zip(found, wanted, strict=True):
        assert one.pages == other.pages
        assert np.array_equal(one.out, other.out)


def test_an_op_that_is_added_has_a_text_and_a_constructor_like_any_other() -> None:
    graph, _ = run(by_op())
    text = graph_text(graph)
    assert "Cubed<scale=2.0>" in text
    assert graph_text(parse_graph(text, TABLE)) == text
    assert repr(IndexerCubed(3)) == "Cubed(scale=3.0)"
    assert IndexerCubed.__doc__ == "``scale * x ** 3``."
